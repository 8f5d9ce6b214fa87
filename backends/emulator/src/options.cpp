#include "options.hpp"

#include <poplar/EngineOptions.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <istream>
#include <iterator>
#include <ostream>

namespace poplar {

OptionFlags::OptionFlags(std::initializer_list<OptionFlag> flags) { set(flags); }
void OptionFlags::set(std::initializer_list<OptionFlag> flags) {
  for (const auto &flag : flags)
    flags_[flag.first] = flag.second;
}
void OptionFlags::set(const std::string &option, const std::string &value) { flags_[option] = value; }
const std::string &OptionFlags::at(const std::string &option) const {
  const auto found = flags_.find(option);
  if (found == flags_.end())
    throw invalid_option("no option '" + option + "'");
  return found->second;
}
bool OptionFlags::contains(const std::string &option) const { return flags_.count(option) != 0; }
void OptionFlags::clear() { flags_.clear(); }
bool OptionFlags::operator==(const OptionFlags &other) const { return flags_ == other.flags_; }

namespace {

/// A flat JSON object.
class Reader {
public:
  explicit Reader(const std::string &text) : text_(text) {}

  void read(OptionFlags &flags) {
    expect('{');
    if (next() != '}')
      do {
        const std::string name = quoted();
        expect(':');
        flags.set(name, next() == '"' ? quoted() : bare());
      } while (next() == ',' && ++at_);
    expect('}');
    if (next() != 0)
      fail("nothing more");
  }

private:
  /// The next character that is not a space; 0 at the end.
  char next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void expect(char c) {
    if (next() != c)
      fail(std::string("'") + c + "'");
    ++at_;
  }

  std::string quoted() {
    expect('"');
    std::string value;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && ++at_ == text_.size())
        break;
      value += text_[at_];
    }
    if (at_ == text_.size())
      fail("'\"'");
    ++at_;
    return value;
  }

  /// A number, true or false.
  std::string bare() {
    std::string value;
    for (; at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || std::string("+-.").find(text_[at_]) != std::string::npos); ++at_)
      value += text_[at_];
    if (value.empty())
      fail("a text, a number, true or false");
    return value;
  }

  [[noreturn]] void fail(const std::string &wanted) const {
    throw parse_error("options: at character " + std::to_string(at_) + " of " + text_ + ": " + wanted + " was expected");
  }

  const std::string &text_;
  std::size_t at_ = 0;
};

constexpr const char *groups[] = {"autoReport", "debug", "exchange", "opt", "prng", "profiler", "streamCallbacks", "target", "test"};

} // namespace

void readJSON(const std::string &text, OptionFlags &flags) { Reader(text).read(flags); }

void readJSON(std::istream &stream, OptionFlags &flags) {
  readJSON(std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()), flags);
}

std::ostream &operator<<(std::ostream &stream, const OptionFlags &flags) {
  stream << "{";
  const char *between = "";
  for (const auto &[name, value] : flags) {
    stream << between << "\"" << name << "\":\"" << value << "\"";
    between = ",";
  }
  return stream << "}";
}

void readJSONFromEnv(const std::string &variable, OptionFlags &flags) {
  if (const char *text = std::getenv(variable.c_str()); text && *text)
    readJSON(std::string(text), flags);
}

void requireEngineOptions(const OptionFlags &flags) {
  for (const auto &[name, value] : flags) {
    const std::string group = name.substr(0, name.find('.'));
    if (group.size() == name.size() || std::find(std::begin(groups), std::end(groups), group) == std::end(groups))
      throw invalid_option("an engine has no option '" + name + "' (with the value '" + value + "')");
  }
}

OptionFlags core::engineOptions(const OptionFlags &given) {
  OptionFlags options;
  readJSONFromEnv("POPLAR_ENGINE_OPTIONS", options);
  for (const auto &[name, value] : given)
    options.set(name, value);
  requireEngineOptions(options);
  return options;
}

} // namespace poplar
