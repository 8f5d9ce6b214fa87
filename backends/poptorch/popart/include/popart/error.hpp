// Substitute for popart::error, the exception of PopART, written from the public documentation.
#ifndef SNNC_POPART_ERROR_HPP
#define SNNC_POPART_ERROR_HPP

#include <sstream>
#include <stdexcept>
#include <string>

namespace popart {

/// An error message; each {} is replaced by an argument.
class error : public std::runtime_error {
public:
  template <typename... Args> explicit error(const std::string &text, const Args &...args) : std::runtime_error(filled(text, args...)) {}

private:
  static std::string filled(const std::string &text) { return text; }
  template <typename First, typename... Rest> static std::string filled(const std::string &text, const First &first, const Rest &...rest) {
    const std::size_t place = text.find("{}");
    if (place == std::string::npos)
      return text;
    std::ostringstream out;
    out << text.substr(0, place) << first;
    return out.str() + filled(text.substr(place + 2), rest...);
  }
};

} // namespace popart

#endif
