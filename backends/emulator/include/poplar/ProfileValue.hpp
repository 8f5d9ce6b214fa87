// Values of profiles and of debug information, and profiles as older programs take them: texts that they write to files.
#ifndef SNNC_POPLAR_PROFILE_VALUE_HPP
#define SNNC_POPLAR_PROFILE_VALUE_HPP

#include <map>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <poplar/OptionFlags.hpp>

namespace poplar {

/// A value as in JSON; or the emulator's profile, as JSON and as a summary for people.
class ProfileValue {
public:
  using String = std::string;
  using Boolean = bool;
  using Number = double;
  using Vector = std::vector<ProfileValue>;
  using Map = std::map<std::string, ProfileValue>;
  enum class Type { STRING, BOOL, NUMBER, VECTOR, MAP };

  ProfileValue() : value_(Map()) {}
  ProfileValue(String text) : value_(std::move(text)) {}
  ProfileValue(const char *text) : value_(String(text)) {}
  ProfileValue(Vector values) : value_(std::move(values)) {}
  ProfileValue(Map values) : value_(std::move(values)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  ProfileValue(T value) : value_(std::conditional_t<std::is_same_v<T, bool>, Boolean, Number>(value)) {}
  /// Of the emulator itself.
  ProfileValue(std::string json, std::string summary) : value_(Map()), json_(std::move(json)), summary_(std::move(summary)) {}

  Type type() const { return Type(value_.index()); }
  /// These throw std::bad_variant_access, and what is not there std::out_of_range.
  const String &asString() const { return std::get<String>(value_); }
  Boolean asBool() const { return std::get<Boolean>(value_); }
  Number asDouble() const { return std::get<Number>(value_); }
  long asInt() const { return long(asDouble()); }
  const Vector &asVector() const { return std::get<Vector>(value_); }
  const Map &asMap() const { return std::get<Map>(value_); }
  const ProfileValue &operator[](std::size_t i) const { return asVector().at(i); }
  const ProfileValue &operator[](const std::string &key) const { return asMap().at(key); }
  std::size_t size() const { return type() == Type::MAP ? asMap().size() : asVector().size(); }
  bool operator==(const ProfileValue &other) const { return json() == other.json(); }
  bool operator!=(const ProfileValue &other) const { return !(*this == other); }

  std::string json() const;
  const std::string &summary() const { return summary_; }

private:
  std::variant<String, Boolean, Number, Vector, Map> value_;
  std::string json_, summary_;
};

inline std::ostream &operator<<(std::ostream &stream, const ProfileValue &value) { return stream << value.json(); }
inline void serializeToJSON(std::ostream &stream, const ProfileValue &profile, bool = false) { stream << profile.json() << "\n"; }
inline void printGraphSummary(std::ostream &stream, const ProfileValue &graph, const OptionFlags & = {}) { stream << graph.summary(); }
inline void printExecutionSummary(std::ostream &stream, const ProfileValue &, const ProfileValue &execution, const OptionFlags & = {}) {
  stream << execution.summary();
}
inline void printProfileSummary(std::ostream &stream, const ProfileValue &, const ProfileValue &execution, const OptionFlags & = {}) {
  stream << execution.summary();
}

} // namespace poplar

#endif
