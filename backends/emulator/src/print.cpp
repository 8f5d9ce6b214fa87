// PrintTensor: 7 decimals, rows on lines of 75 columns, long dimensions shown by their edges.
#include <cstdio>
#include <cstring>
#include <ostream>

#include "engine_data.hpp"

namespace poplar::core {

namespace {

constexpr std::size_t summariseAbove = 1000, edgeItems = 3, lineWidth = 75;

template <class T> T read(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string real(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.7f", value);
  return text;
}

std::string elementText(Type type, const char *at) {
  switch (type.id()) {
  case BOOL.id():
    return *at ? "1" : "0";
  case CHAR.id():
  case SIGNED_CHAR.id():
    return std::to_string(read<signed char>(at));
  case UNSIGNED_CHAR.id():
    return std::to_string(read<unsigned char>(at));
  case SHORT.id():
    return std::to_string(read<std::int16_t>(at));
  case UNSIGNED_SHORT.id():
    return std::to_string(read<std::uint16_t>(at));
  case INT.id():
    return std::to_string(read<std::int32_t>(at));
  case UNSIGNED_INT.id():
    return std::to_string(read<std::uint32_t>(at));
  case LONGLONG.id():
    return std::to_string(read<std::int64_t>(at));
  case UNSIGNED_LONGLONG.id():
    return std::to_string(read<std::uint64_t>(at));
  case HALF.id():
    return real(double(read<half>(at)));
  default:
    return real(double(read<float>(at)));
  }
}

class Printer {
public:
  Printer(std::ostream &os, const PrintStep &print) : os_(os), print_(print) {
    std::size_t n = 1;
    for (std::size_t d : print.shape)
      n *= d;
    short_ = n > summariseAbove;
  }

  void dimension(std::size_t depth, std::size_t offset) {
    if (depth == print_.shape.size()) {
      os_ << element(offset);
      return;
    }
    const std::size_t n = print_.shape[depth];
    std::size_t inner = 1;
    for (std::size_t d = depth + 1; d < print_.shape.size(); ++d)
      inner *= print_.shape[d];
    if (depth + 1 == print_.shape.size())
      return row(depth, n, offset);
    os_ << "[";
    for (std::size_t i = 0; i < n; ++i) {
      os_ << "\n" << std::string(depth + 1, ' ');
      if (hidden(i, n)) {
        os_ << "...";
        i = n - edgeItems - 1;
        continue;
      }
      dimension(depth + 1, offset + i * inner);
    }
    os_ << "\n" << std::string(depth, ' ') << "]";
  }

private:
  bool hidden(std::size_t i, std::size_t n) const { return short_ && n > 2 * edgeItems && i >= edgeItems && i < n - edgeItems; }
  std::string element(std::size_t i) const { return elementText(print_.type, print_.buffer.data() + i * print_.type.size()); }

  void row(std::size_t depth, std::size_t n, std::size_t offset) {
    os_ << "[";
    std::size_t column = depth + 1;
    for (std::size_t i = 0; i < n; ++i) {
      const bool skip = hidden(i, n);
      const std::string text = skip ? "..." : element(offset + i);
      if (i > 0 && column + 1 + text.size() > lineWidth) {
        os_ << "\n" << std::string(depth + 1, ' ');
        column = depth + 1;
      } else if (i > 0) {
        os_ << ' ';
        ++column;
      }
      os_ << text;
      column += text.size();
      if (skip)
        i = n - edgeItems - 1;
    }
    os_ << "]";
  }

  std::ostream &os_;
  const PrintStep &print_;
  bool short_;
};

} // namespace

void printTensor(std::ostream &os, const PrintStep &print) {
  os << print.title << ": ";
  Printer(os, print).dimension(0, 0);
  os << "\n" << std::flush;
}

} // namespace poplar::core
