// Records of library operations, and the file that they are written to.
#include <poplar/DebugContext.hpp>
#include <poplar/exceptions.hpp>

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>

#include "json_text.hpp"

namespace poplar {

ProfileValue::ProfileValue() = default;
ProfileValue::ProfileValue(String text) : type_(Type::STRING), text_(std::move(text)) {}
ProfileValue::ProfileValue(const char *text) : type_(Type::STRING), text_(text) {}
ProfileValue::ProfileValue(Vector values) : type_(Type::VECTOR), vector_(std::move(values)) {}
ProfileValue::ProfileValue(Map values) : map_(std::move(values)) {}
ProfileValue::ProfileValue(Type type, Number number) : type_(type), number_(number) {}
ProfileValue::ProfileValue(std::string json, std::string summary) : json_(std::move(json)), summary_(std::move(summary)) {}
ProfileValue::ProfileValue(const ProfileValue &other) = default;
ProfileValue::ProfileValue(ProfileValue &&other) = default;
ProfileValue &ProfileValue::operator=(const ProfileValue &other) = default;
ProfileValue &ProfileValue::operator=(ProfileValue &&other) = default;
ProfileValue::~ProfileValue() = default;
const ProfileValue &ProfileValue::operator[](std::size_t i) const { return asVector().at(i); }
const ProfileValue &ProfileValue::operator[](const std::string &key) const { return asMap().at(key); }
std::size_t ProfileValue::size() const { return type() == Type::MAP ? asMap().size() : asVector().size(); }
bool ProfileValue::operator==(const ProfileValue &other) const { return json() == other.json(); }

std::ostream &operator<<(std::ostream &stream, const ProfileValue &value) { return stream << value.json(); }
void serializeToJSON(std::ostream &stream, const ProfileValue &profile, bool) { stream << profile.json() << "\n"; }
void printGraphSummary(std::ostream &stream, const ProfileValue &graph, const OptionFlags &) { stream << graph.summary(); }
void printExecutionSummary(std::ostream &stream, const ProfileValue &, const ProfileValue &execution, const OptionFlags &) {
  stream << execution.summary();
}
void printProfileSummary(std::ostream &stream, const ProfileValue &, const ProfileValue &execution, const OptionFlags &) {
  stream << execution.summary();
}

std::string ProfileValue::json() const {
  if (!json_.empty())
    return json_;
  std::string text;
  const auto join = [&](const std::string &part) { text += (text.empty() ? "" : ",") + part; };
  switch (type()) {
  case Type::STRING:
    return core::quoted(asString());
  case Type::BOOL:
    return asBool() ? "true" : "false";
  case Type::NUMBER: {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", asDouble());
    return digits;
  }
  case Type::VECTOR:
    for (const ProfileValue &value : asVector())
      join(value.json());
    return "[" + text + "]";
  default:
    for (const auto &[name, value] : asMap())
      join(core::quoted(name) + ":" + value.json());
    return "{" + text + "}";
  }
}

SourceLocation::SourceLocation() = default;
SourceLocation::SourceLocation(const SourceLocation &other) = default;
SourceLocation::SourceLocation(SourceLocation &&other) noexcept = default;
SourceLocation &SourceLocation::operator=(const SourceLocation &other) = default;
SourceLocation &SourceLocation::operator=(SourceLocation &&other) noexcept = default;
SourceLocation::~SourceLocation() = default;
SourceLocation SourceLocation::Current(const char *functionName, const char *fileName, unsigned lineNumber) {
  SourceLocation location;
  location.function_ = functionName;
  location.file_ = fileName;
  location.line_ = lineNumber;
  location.valid_ = true;
  return location;
}

DebugContext::DebugContext(SourceLocation location) : location_(std::move(location)) {}
DebugContext::DebugContext(const char *name, SourceLocation location) : name_(name), location_(std::move(location)) {}
DebugContext::DebugContext(std::string name, SourceLocation location) : name_(std::move(name)), location_(std::move(location)) {}
DebugContext::DebugContext(StringRef name, SourceLocation location) : name_(name), location_(std::move(location)) {}
DebugContext::DebugContext(const DebugInfo &info, std::string name, SourceLocation location)
    : name_(joinedName(info.getPathName(), name)), parent_(info.getId()), location_(std::move(location)) {}
DebugContext::DebugContext(const DebugNameAndId &prefix, std::string name, SourceLocation location)
    : name_(joinedName(prefix.getPathName(), name)), parent_(prefix.getParentId()), location_(std::move(location)) {}
DebugContext::DebugContext(const DebugContext &prefix, StringRef name)
    : name_(joinedName(prefix.name_, name)), parent_(prefix.parent_), location_(prefix.location_) {}
DebugContext::DebugContext(const DebugContext &other) = default;
DebugContext::DebugContext(DebugContext &&other) noexcept = default;
DebugContext &DebugContext::operator=(const DebugContext &other) = default;
DebugContext &DebugContext::operator=(DebugContext &&other) noexcept = default;
DebugContext::~DebugContext() = default;

std::string joinedName(const std::string &path, const std::string &name) {
  return path.empty() ? name : name.empty() ? path : path + "/" + name;
}

namespace {

/// The file of DebugInfo::initializeStreamer: one per process, as in Poplar.
struct Streamer {
  std::mutex mutex;
  std::unique_ptr<std::ofstream> file;
  bool first = true;
};

Streamer &streamer() {
  static Streamer one;
  return one;
}

DebugId nextId() {
  static std::atomic<DebugId> last{0};
  return ++last;
}

} // namespace

DebugInfo::DebugInfo(const DebugContext &context, std::string api)
    : id_(nextId()), parent_(context.getParentId()), name_(context.getPathName()), api_(std::move(api)), location_(context.getLocation()) {}

DebugInfo::~DebugInfo() {
  Streamer &out = streamer();
  const std::lock_guard<std::mutex> lock(out.mutex);
  if (!out.file)
    return;
  *out.file << (out.first ? "\n" : ",\n") << "{\"id\": " << id_ << ", \"parentId\": " << parent_ << ", \"layer\": " << core::quoted(api_)
            << ", \"name\": " << core::quoted(name_) << ", \"location\": {\"fileName\": " << core::quoted(location_.getFileName())
            << ", \"functionName\": " << core::quoted(location_.getFunctionName()) << ", \"lineNumber\": " << location_.getLineNumber() << "}";
  for (const auto &[name, value] : values_)
    *out.file << ", " << core::quoted(name) << ": " << value.json();
  *out.file << "}";
  out.first = false;
}

bool DebugInfo::setValue(std::string name, ProfileValue value) { return values_.insert_or_assign(std::move(name), std::move(value)).second; }

void DebugInfo::initializeStreamer(const std::string &fileName, const DebugSerializationFormat &format) {
  if (format != DebugSerializationFormat::JSON)
    throw invalid_option("DebugInfo::initializeStreamer: the emulator writes JSON alone, not CBOR");
  Streamer &out = streamer();
  const std::lock_guard<std::mutex> lock(out.mutex);
  auto file = std::make_unique<std::ofstream>(fileName);
  if (!*file)
    throw poplar_error("DebugInfo::initializeStreamer: cannot write " + fileName);
  *file << "{\"contexts\": [";
  out.file = std::move(file);
  out.first = true;
}

void DebugInfo::closeStreamer() {
  Streamer &out = streamer();
  const std::lock_guard<std::mutex> lock(out.mutex);
  if (!out.file)
    throw poplar_error("DebugInfo::closeStreamer: no file is open; DebugInfo::initializeStreamer opens one");
  *out.file << "\n]}\n";
  out.file.reset();
}

} // namespace poplar
