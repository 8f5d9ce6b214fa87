// Values of profiles and of debug information, and profiles as older programs use them: texts that they write to files.
#ifndef SNNC_POPLAR_PROFILE_VALUE_HPP
#define SNNC_POPLAR_PROFILE_VALUE_HPP

#include <map>
#include <ostream>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <poplar/OptionFlags.hpp>
#include <poplar/core/Language.hpp>

namespace poplar {

/// A value as in JSON; or the emulator's profile, as JSON and as a readable summary.
class ProfileValue {
public:
  using String = std::string;
  using Boolean = bool;
  using Number = double;
  using Vector = std::vector<ProfileValue>;
  using Map = std::map<std::string, ProfileValue>;
  enum class Type { STRING, BOOL, NUMBER, VECTOR, MAP };

  ProfileValue();
  ProfileValue(String text);
  ProfileValue(const char *text);
  ProfileValue(Vector values);
  ProfileValue(Map values);
  template <class T, class = core::EnableIf<std::is_arithmetic<T>::value>>
  ProfileValue(T value) : ProfileValue(std::is_same<T, bool>::value ? Type::BOOL : Type::NUMBER, Number(value)) {}
  /// Internal to the emulator.
  ProfileValue(std::string json, std::string summary);
  ProfileValue(const ProfileValue &other);
  ProfileValue(ProfileValue &&other);
  ProfileValue &operator=(const ProfileValue &other);
  ProfileValue &operator=(ProfileValue &&other);
  ~ProfileValue();

  Type type() const { return type_; }
  /// A value of another type throws std::bad_cast, a missing element std::out_of_range.
  const String &asString() const { return require(Type::STRING), text_; }
  Boolean asBool() const { return require(Type::BOOL), number_ != 0; }
  Number asDouble() const { return require(Type::NUMBER), number_; }
  long asInt() const { return long(asDouble()); }
  const Vector &asVector() const { return require(Type::VECTOR), vector_; }
  const Map &asMap() const { return require(Type::MAP), map_; }
  const ProfileValue &operator[](std::size_t i) const;
  const ProfileValue &operator[](const std::string &key) const;
  std::size_t size() const;
  bool operator==(const ProfileValue &other) const;
  bool operator!=(const ProfileValue &other) const { return !(*this == other); }

  std::string json() const;
  const std::string &summary() const { return summary_; }

private:
  ProfileValue(Type type, Number number);
  void require(Type type) const {
    if (type != type_)
      throw std::bad_cast();
  }

  Type type_ = Type::MAP;
  String text_;
  Number number_ = 0;
  Vector vector_;
  Map map_;
  std::string json_, summary_;
};

std::ostream &operator<<(std::ostream &stream, const ProfileValue &value);
void serializeToJSON(std::ostream &stream, const ProfileValue &profile, bool = false);
void printGraphSummary(std::ostream &stream, const ProfileValue &graph, const OptionFlags & = {});
void printExecutionSummary(std::ostream &stream, const ProfileValue &graph, const ProfileValue &execution, const OptionFlags & = {});
void printProfileSummary(std::ostream &stream, const ProfileValue &graph, const ProfileValue &execution, const OptionFlags & = {});

} // namespace poplar

#endif
