// A view of characters, from a literal or a string.
#ifndef SNNC_POPLAR_STRING_REF_HPP
#define SNNC_POPLAR_STRING_REF_HPP

#include <cstring>
#include <ostream>
#include <string>

#include <poplar/ArrayRef.hpp>

namespace poplar {

class StringRef : public ArrayRef<char> {
public:
  StringRef() = default;
  StringRef(const char *text) : ArrayRef(text, std::strlen(text)) {}
  StringRef(const char *text, std::size_t length) : ArrayRef(text, length) {}
  StringRef(const std::string &text) : ArrayRef(text.data(), text.size()) {}
  std::string cloneAsString() const { return std::string(data(), size()); }
  operator std::string() const { return cloneAsString(); }
  friend bool operator==(const StringRef &a, const StringRef &b) { return static_cast<const ArrayRef &>(a) == static_cast<const ArrayRef &>(b); }
  friend bool operator!=(const StringRef &a, const StringRef &b) { return !(a == b); }
  friend bool operator<(const StringRef &a, const StringRef &b) { return a.cloneAsString() < b.cloneAsString(); }
  friend std::string operator+(const StringRef &a, const StringRef &b) { return a.cloneAsString() + b.cloneAsString(); }
  friend std::ostream &operator<<(std::ostream &os, const StringRef &text) { return os.write(text.data(), std::streamsize(text.size())); }
};

} // namespace poplar

namespace gccs {
using poplar::StringRef;
}

#endif
