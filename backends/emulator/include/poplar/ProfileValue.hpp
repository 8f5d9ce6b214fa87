// Profiles as older programs take them: texts that they write to files.
#ifndef SNNC_POPLAR_PROFILE_VALUE_HPP
#define SNNC_POPLAR_PROFILE_VALUE_HPP

#include <ostream>
#include <string>
#include <utility>

#include <poplar/OptionFlags.hpp>

namespace poplar {

/// The emulator's profile: as JSON, and as a summary for people.
class ProfileValue {
public:
  ProfileValue() = default;
  ProfileValue(std::string json, std::string summary) : json_(std::move(json)), summary_(std::move(summary)) {}
  const std::string &json() const { return json_; }
  const std::string &summary() const { return summary_; }

private:
  std::string json_ = "{}", summary_;
};

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
