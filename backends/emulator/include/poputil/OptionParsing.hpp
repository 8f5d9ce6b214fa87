// Options of a library's functions: their names, and the destinations of their values.
#ifndef SNNC_POPUTIL_OPTION_PARSING_HPP
#define SNNC_POPUTIL_OPTION_PARSING_HPP

#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <poplar/StringRef.hpp>
#include <poplar/exceptions.hpp>

namespace poplibs {
namespace parse {

/// Decimal, or hexadecimal after 0x.
template <class T> T asInteger(const poplar::StringRef &value) {
  const std::string text = value;
  std::istringstream stream(text);
  T number;
  if (!(stream >> (text.find("0x") == std::string::npos ? std::dec : std::hex) >> number) || stream.peek() != std::istringstream::traits_type::eof())
    throw poplar::invalid_option("'" + text + "' is not an integer");
  return number;
}

template <class T> T asFloatingPoint(const poplar::StringRef &value) {
  std::istringstream stream{std::string(value)};
  T number;
  if (!(stream >> number))
    throw poplar::invalid_option("'" + std::string(value) + "' is not a number");
  return number;
}

template <class T> T asEnum(const poplar::StringRef &value, const std::map<std::string, T> &values) {
  const auto found = values.find(value);
  if (found != values.end())
    return found->second;
  std::string known;
  for (const auto &entry : values)
    known += (known.empty() ? "'" : ", '") + entry.first + "'";
  throw poplar::invalid_option("'" + std::string(value) + "' is none of " + known);
}

inline bool asBool(const poplar::StringRef &value) { return asEnum<bool>(value, {{"false", false}, {"true", true}}); }

} // namespace parse

/// The handling of the value of one option.
class OptionHandler {
public:
  template <class F, class = decltype(std::declval<F &>()(std::declval<poplar::StringRef>()))>
  OptionHandler(F handler) : handler_(std::move(handler)) {}
  void parseValue(poplar::StringRef value) const { handler_(value); }

  template <class T, class Values = std::map<std::string, T>> static OptionHandler createWithEnum(T &output, Values &&values) {
    const std::map<std::string, T> known(std::forward<Values>(values));
    return OptionHandler([&output, known](poplar::StringRef value) { output = parse::asEnum<T>(value, known); });
  }
  template <class T> static OptionHandler createWithInteger(T &output) {
    return OptionHandler([&output](poplar::StringRef value) { output = T(parse::asInteger<long long>(value)); });
  }
  template <class T> static OptionHandler createWithBool(T &output) {
    return OptionHandler([&output](poplar::StringRef value) { output = T(parse::asBool(value)); });
  }
  template <class T>
  static void ensureValueIsWithinBounds(T value, const T &lower, bool lowerIsInclusive, const T &upper, bool upperIsInclusive) {
    if (value < lower || value > upper || (!lowerIsInclusive && value == lower) || (!upperIsInclusive && value == upper))
      throw poplar::invalid_option(std::to_string(value) + " is outside " + (lowerIsInclusive ? "[" : "(") + std::to_string(lower) + ", " +
                                   std::to_string(upper) + (upperIsInclusive ? "]" : ")"));
  }
  template <class T>
  static OptionHandler createWithDouble(T &output, double lower = std::numeric_limits<double>::lowest(), bool lowerIsInclusive = true,
                                        double upper = std::numeric_limits<double>::max(), bool upperIsInclusive = true) {
    return OptionHandler([=, &output](poplar::StringRef value) {
      const double number = parse::asFloatingPoint<double>(value);
      ensureValueIsWithinBounds(number, lower, lowerIsInclusive, upper, upperIsInclusive);
      output = T(number);
    });
  }
  static OptionHandler createWithString(std::string &output) {
    return OptionHandler([&output](poplar::StringRef value) { output = value.cloneAsString(); });
  }
  template <class T> static OptionHandler createWithList(std::vector<T> &output) {
    return OptionHandler([&output](poplar::StringRef values) {
      std::istringstream stream{std::string(values)};
      for (std::string element; std::getline(stream, element, ',');)
        output.push_back(T(parse::asInteger<long long>(element)));
    });
  }

private:
  std::function<void(poplar::StringRef)> handler_;
};

/// The options of a function.
class OptionSpec {
public:
  OptionSpec(std::initializer_list<std::pair<const std::string, OptionHandler>> handlers) : handlers_(handlers) {}
  /// Throws invalid_option for an unknown option or value.
  void parse(poplar::StringRef option, poplar::StringRef value, bool ignoreUnknown = false) const {
    const auto found = handlers_.find(option);
    if (found == handlers_.end()) {
      if (ignoreUnknown)
        return;
      throw poplar::invalid_option("Unrecognised option '" + std::string(option) + "'");
    }
    try {
      found->second.parseValue(value);
    } catch (const poplar::invalid_option &error) {
      throw poplar::invalid_option("Invalid value '" + std::string(value) + "' for option '" + std::string(option) + "': " + error.what());
    }
  }

private:
  std::map<std::string, OptionHandler> handlers_;
};

} // namespace poplibs

#endif
