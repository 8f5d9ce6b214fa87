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
  OptionFlags(std::initializer_list<OptionFlag> flags) { set(flags); }
  void set(std::initializer_list<OptionFlag> flags) {
    for (const auto &flag : flags)
      flags_[flag.first] = flag.second;
  }
  void set(const std::string &option, const std::string &value) { flags_[option] = value; }
  const std::string &at(const std::string &option) const {
    const auto found = flags_.find(option);
    if (found == flags_.end())
      throw invalid_option("no option '" + option + "'");
    return found->second;
  }
  bool contains(const std::string &option) const { return flags_.count(option) != 0; }
  void clear() { flags_.clear(); }
  bool operator==(const OptionFlags &other) const { return flags_ == other.flags_; }
  bool operator!=(const OptionFlags &other) const { return !(*this == other); }
  iterator begin() const { return flags_.begin(); }
  iterator end() const { return flags_.end(); }

private:
  std::map<std::string, std::string> flags_;
};

/// Adds options from a JSON object of texts, numbers and booleans to `flags`; throws parse_error.
void readJSON(const std::string &text, OptionFlags &flags);
void readJSON(std::istream &stream, OptionFlags &flags);
/// The same from an environment variable; no effect if it is not set.
void readJSONFromEnv(const std::string &variable, OptionFlags &flags);
std::ostream &operator<<(std::ostream &stream, const OptionFlags &flags);

} // namespace poplar

#endif
