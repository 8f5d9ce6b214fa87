// PrintTensor: 7 decimals, lines of 75 columns, long dimensions abbreviated to their ends.
#include <poplar/HalfFloat.hpp>

#include <cstdio>
#include <cstring>
#include <ostream>

#include "engine_data.hpp"

namespace poplar::core {

namespace {

/// One space for each dimension that the line is nested in.
constexpr std::size_t indent = 2;

template <class T> T read(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string real(double value, const PrintTensorFmt &format) {
  char text[400];
  const bool scientific = format.format == PrintTensorFmt::FloatFormat::Scientific;
  std::snprintf(text, sizeof text, scientific ? "%.*e" : "%.*f", int(format.digitsAll ? format.digitsAll - 1 : 0), value);
  return text;
}

std::string elementText(Type type, const char *at, const PrintTensorFmt &format) {
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
    return real(double(read<half>(at)), format);
  default:
    return real(double(read<float>(at)), format);
  }
}

class Printer {
public:
  Printer(std::ostream &os, const PrintStep &print) : os_(os), print_(print) {
    std::size_t n = 1;
    for (std::size_t d : print.shape)
      n *= d;
    short_ = n > print.format.threshold;
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
    os_ << format().open;
    for (std::size_t i = 0; i < n; ++i) {
      os_ << "\n" << std::string(indent * (depth + 1), ' ');
      if (hidden(i, n)) {
        os_ << "...";
        i = n - format().edges - 1;
        continue;
      }
      dimension(depth + 1, offset + i * inner);
    }
    os_ << "\n" << std::string(indent * depth, ' ') << format().close;
  }

private:
  const PrintTensorFmt &format() const { return print_.format; }
  bool hidden(std::size_t i, std::size_t n) const { return short_ && n > 2 * format().edges && i >= format().edges && i < n - format().edges; }
  std::string element(std::size_t i) const { return elementText(print_.type, print_.buffer.data() + i * print_.type.size(), format()); }

  void row(std::size_t depth, std::size_t n, std::size_t offset) {
    os_ << format().open;
    const std::size_t start = indent * depth + 1;
    std::size_t column = start;
    for (std::size_t i = 0; i < n; ++i) {
      const bool skip = hidden(i, n);
      const std::string text = skip ? "..." : element(offset + i);
      if (i > 0 && column + 1 + text.size() > format().width) {
        os_ << "\n" << std::string(start, ' ');
        column = start;
      } else if (i > 0) {
        os_ << format().between;
        ++column;
      }
      os_ << text;
      column += text.size();
      if (skip)
        i = n - format().edges - 1;
    }
    os_ << format().close;
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
