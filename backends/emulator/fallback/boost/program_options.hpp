// For programs that parse their command line with Boost.Program_options if Boost is not installed; searched after all other folders.
// Options and positional arguments of the command line; no files, no environment.
#ifndef SNNC_FALLBACK_BOOST_PROGRAM_OPTIONS_HPP
#define SNNC_FALLBACK_BOOST_PROGRAM_OPTIONS_HPP
#include <algorithm>
#include <any>
#include <cctype>
#include <functional>
#include <iomanip>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
namespace boost {
namespace program_options {

struct error : std::logic_error {
  using std::logic_error::logic_error;
};
struct unknown_option : error {
  explicit unknown_option(const std::string &name) : error("unrecognised option '" + name + "'") {}
};
struct required_option : error {
  explicit required_option(const std::string &name) : error("the option '--" + name + "' is required but missing") {}
};
struct invalid_option_value : error {
  explicit invalid_option_value(const std::string &value) : error("the argument ('" + value + "') is invalid") {}
};
struct validation_error : error {
  enum kind_t { multiple_values_not_allowed = 30, at_least_one_value_required, invalid_bool_value, invalid_option_value, invalid_option };
  explicit validation_error(kind_t kind, const std::string &value = "", const std::string &option = "", int = 0)
      : error("the value '" + value + "' of option '" + option + "' is not taken"), kind_(kind) {}
  kind_t kind() const { return kind_; }

private:
  kind_t kind_;
};
struct invalid_command_line_syntax : error {
  using error::error;
};

class variable_value {
public:
  variable_value() = default;
  variable_value(std::any value, bool defaulted) : value_(std::move(value)), defaulted_(defaulted) {}
  template <class T> const T &as() const { return std::any_cast<const T &>(value_); }
  template <class T> T &as() { return std::any_cast<T &>(value_); }
  bool empty() const { return !value_.has_value(); }
  bool defaulted() const { return defaulted_; }
  const std::any &value() const { return value_; }

private:
  std::any value_;
  bool defaulted_ = false;
};

class value_semantic {
public:
  virtual ~value_semantic() = default;
  virtual bool takes_value() const { return false; }
  virtual bool takes_several() const { return false; }
  virtual std::any read(const std::vector<std::string> &) const { return std::string(); }
  virtual std::any fallback() const { return {}; }
  virtual bool is_required() const { return false; }
  virtual void notify(const std::any &) const {}
  virtual std::string name() const { return ""; }
};

namespace detail {
template <class T> struct is_list : std::false_type {};
template <class T> struct is_list<std::vector<T>> : std::true_type {};

template <class T> T parse(const std::string &text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text;
  } else if constexpr (std::is_same_v<T, bool>) {
    for (const char *yes : {"1", "true", "yes", "on"})
      if (text == yes)
        return true;
    for (const char *no : {"0", "false", "no", "off"})
      if (text == no)
        return false;
    throw invalid_option_value(text);
  } else {
    std::istringstream stream(text);
    T value{};
    if (!(stream >> value) || !(stream >> std::ws).eof())
      throw invalid_option_value(text);
    return value;
  }
}
} // namespace detail

template <class T> class typed_value : public value_semantic {
public:
  explicit typed_value(T *target) : target_(target) {}
  typed_value *default_value(const T &value) {
    std::ostringstream text;
    if constexpr (!detail::is_list<T>::value)
      text << std::boolalpha << value;
    return default_value(value, text.str());
  }
  typed_value *default_value(const T &value, const std::string &text) {
    default_ = value;
    shown_ = text;
    return this;
  }
  typed_value *implicit_value(const T &value) {
    implicit_ = value;
    return this;
  }
  typed_value *implicit_value(const T &value, const std::string &) { return implicit_value(value); }
  typed_value *required() {
    required_ = true;
    return this;
  }
  typed_value *multitoken() {
    several_ = true;
    return this;
  }
  typed_value *composing() { return this; }
  typed_value *value_name(const std::string &name) {
    name_ = name;
    return this;
  }
  typed_value *notifier(std::function<void(const T &)> function) {
    notifier_ = std::move(function);
    return this;
  }
  typed_value *zero_tokens() {
    switch_ = true;
    return this;
  }

  bool takes_value() const override { return !switch_; }
  bool takes_several() const override { return several_; }
  bool is_required() const override { return required_; }
  std::any fallback() const override { return default_; }
  std::any read(const std::vector<std::string> &texts) const override {
    if constexpr (detail::is_list<T>::value) {
      T values;
      for (const std::string &text : texts)
        values.push_back(detail::parse<typename T::value_type>(text));
      return values;
    } else {
      if (texts.empty() && implicit_.has_value())
        return implicit_;
      if (texts.empty())
        throw invalid_command_line_syntax("an option lacks its argument");
      return detail::parse<T>(texts.back());
    }
  }
  void notify(const std::any &value) const override {
    if (target_)
      *target_ = std::any_cast<const T &>(value);
    if (notifier_)
      notifier_(std::any_cast<const T &>(value));
  }
  std::string name() const override {
    if (switch_)
      return "";
    return " " + name_ + (shown_.empty() ? "" : " (=" + shown_ + ")");
  }

private:
  T *target_;
  std::any default_, implicit_;
  std::string shown_, name_ = "arg";
  bool required_ = false, several_ = false, switch_ = false;
  std::function<void(const T &)> notifier_;
};

template <class T> typed_value<T> *value(T *target) { return new typed_value<T>(target); }
template <class T> typed_value<T> *value() { return new typed_value<T>(nullptr); }
inline typed_value<bool> *bool_switch(bool *target = nullptr) {
  return (new typed_value<bool>(target))->default_value(false, "")->implicit_value(true)->zero_tokens();
}

struct option_description {
  std::string name, letter, text;
  std::shared_ptr<const value_semantic> semantic;
};

class options_description {
public:
  class adder {
  public:
    explicit adder(options_description &owner) : owner_(owner) {}
    adder &operator()(const char *names, const char *text) { return add(names, new value_semantic, text); }
    adder &operator()(const char *names, const value_semantic *semantic, const char *text = "") { return add(names, semantic, text); }

  private:
    adder &add(const std::string &names, const value_semantic *semantic, const char *text) {
      const std::size_t comma = names.find(',');
      owner_.options_.push_back({names.substr(0, comma), comma == std::string::npos ? "" : names.substr(comma + 1), text,
                                 std::shared_ptr<const value_semantic>(semantic)});
      return *this;
    }
    options_description &owner_;
  };

  explicit options_description(const std::string &caption = "", unsigned = 80) : caption_(caption) {}
  adder add_options() { return adder(*this); }
  options_description &add(const options_description &other) {
    options_.insert(options_.end(), other.options_.begin(), other.options_.end());
    return *this;
  }
  const std::vector<option_description> &options() const { return options_; }
  const option_description *find(const std::string &name) const {
    for (const option_description &option : options_)
      if (option.name == name || (!option.letter.empty() && "-" + option.letter == name))
        return &option;
    return nullptr;
  }
  friend std::ostream &operator<<(std::ostream &stream, const options_description &all) {
    if (!all.caption_.empty())
      stream << all.caption_ << ":\n";
    for (const option_description &option : all.options_) {
      const std::string letter = option.letter.empty() ? "" : "-" + option.letter + " [ ";
      stream << "  " << std::left << std::setw(30) << letter + "--" + option.name + (letter.empty() ? "" : " ]") + option.semantic->name()
             << " " << option.text << "\n";
    }
    return stream;
  }

private:
  std::string caption_;
  std::vector<option_description> options_;
};

class positional_options_description {
public:
  positional_options_description &add(const char *name, int most) {
    names_.emplace_back(name, most);
    return *this;
  }
  /// The option of the n-th argument; "" after the last.
  std::string name_for_position(int position) const {
    for (const auto &[name, most] : names_) {
      if (most < 0 || position < most)
        return name;
      position -= most;
    }
    return "";
  }

private:
  std::vector<std::pair<std::string, int>> names_;
};

struct parsed_options {
  const options_description *description = nullptr;
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
};

class command_line_parser {
public:
  command_line_parser(int argc, const char *const *argv) : words_(argv + 1, argv + std::max(argc, 1)) {}
  explicit command_line_parser(std::vector<std::string> words) : words_(std::move(words)) {}
  command_line_parser &options(const options_description &description) {
    result_.description = &description;
    return *this;
  }
  command_line_parser &positional(const positional_options_description &positions) {
    positions_ = positions;
    return *this;
  }
  command_line_parser &allow_unregistered() {
    lenient_ = true;
    return *this;
  }
  parsed_options run() {
    int position = 0;
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const std::string word = words_[at_];
      const bool isLong = word.size() > 2 && word.compare(0, 2, "--") == 0;
      if (isLong || (word.size() > 1 && word[0] == '-' && !std::isdigit(static_cast<unsigned char>(word[1])))) {
        take(word, isLong);
        continue;
      }
      const std::string name = positions_.name_for_position(position++);
      if (name.empty() && !lenient_)
        throw invalid_command_line_syntax("too many positional options have been specified on the command line");
      if (!name.empty())
        note(name, {word});
    }
    return result_;
  }

private:
  void take(const std::string &word, bool isLong) {
    const std::size_t equals = isLong ? word.find('=') : std::string::npos;
    const std::string key = isLong ? word.substr(2, equals == std::string::npos ? equals : equals - 2) : word.substr(0, 2);
    const option_description *option = result_.description->find(key);
    if (!option) {
      if (!lenient_)
        throw unknown_option(word);
      return;
    }
    std::vector<std::string> values;
    if (equals != std::string::npos)
      values.push_back(word.substr(equals + 1));
    else if (!isLong && word.size() > 2)
      values.push_back(word.substr(2));
    else if (option->semantic->takes_value())
      while (at_ + 1 < words_.size() && (words_[at_ + 1].size() < 2 || words_[at_ + 1][0] != '-' || std::isdigit(static_cast<unsigned char>(words_[at_ + 1][1]))) &&
             (values.empty() || option->semantic->takes_several()))
        values.push_back(words_[++at_]);
    note(option->name, std::move(values));
  }
  void note(const std::string &name, std::vector<std::string> values) {
    for (auto &[known, list] : result_.found)
      if (known == name) {
        list.insert(list.end(), values.begin(), values.end());
        return;
      }
    result_.found.emplace_back(name, std::move(values));
  }

  std::vector<std::string> words_;
  std::size_t at_ = 0;
  positional_options_description positions_;
  parsed_options result_;
  bool lenient_ = false;
};

inline parsed_options parse_command_line(int argc, const char *const *argv, const options_description &description) {
  return command_line_parser(argc, argv).options(description).run();
}

class variables_map : public std::map<std::string, variable_value> {
public:
  const variable_value &operator[](const std::string &name) const {
    static const variable_value none;
    const auto entry = find(name);
    return entry == end() ? none : entry->second;
  }
  std::map<std::string, std::shared_ptr<const value_semantic>> semantics;
};

inline void store(const parsed_options &parsed, variables_map &variables) {
  for (const option_description &option : parsed.description->options())
    variables.semantics[option.name] = option.semantic;
  for (const auto &[name, values] : parsed.found)
    if (const option_description *option = parsed.description->find(name))
      variables.insert_or_assign(name, variable_value(option->semantic->read(values), false));
  for (const option_description &option : parsed.description->options())
    if (std::any value = option.semantic->fallback(); value.has_value() && variables.count(option.name) == 0)
      variables.insert_or_assign(option.name, variable_value(value, true));
}

inline void notify(variables_map &variables) {
  for (const auto &[name, semantic] : variables.semantics) {
    const auto entry = variables.find(name);
    if (entry != variables.end())
      semantic->notify(entry->second.value());
    else if (semantic->is_required())
      throw required_option(name);
  }
}

} // namespace program_options
} // namespace boost
#endif
