// Options as pairs of strings.
#ifndef SNNC_POPLAR_OPTION_FLAGS_HPP
#define SNNC_POPLAR_OPTION_FLAGS_HPP

#include <initializer_list>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>

#include <poplar/exceptions.hpp>

namespace poplar {

class OptionFlags {
public:
  using OptionFlag = std::pair<const std::string, std::string>;
  using iterator = std::map<std::string, std::string>::const_iterator;
  OptionFlags() = default;
  OptionFlags(std::initializer_list<OptionFlag> flags);
  void set(std::initializer_list<OptionFlag> flags);
  void set(const std::string &option, const std::string &value);
  const std::string &at(const std::string &option) const;
  bool contains(const std::string &option) const;
  void clear();
  bool operator==(const OptionFlags &other) const;
  bool operator!=(const OptionFlags &other) const { return !(*this == other); }
  iterator begin() const { return flags_.begin(); }
  iterator end() const { return flags_.end(); }

private:
  std::map<std::string, std::string> flags_;
};

/// Adds options from a JSON object of texts, numbers and booleans to `flags`; throws parse_error.
void readJSON(const std::string &text, OptionFlags &flags);
void readJSON(std::istream &stream, OptionFlags &flags);
/// Adds options from an environment variable that contains such an object; no effect if it is not set.
void readJSONFromEnv(const std::string &variable, OptionFlags &flags);
std::ostream &operator<<(std::ostream &stream, const OptionFlags &flags);

} // namespace poplar

#endif
