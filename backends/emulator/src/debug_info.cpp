// Records of library operations, and the file that they are written to.
#include <poplar/DebugContext.hpp>
#include <poplar/exceptions.hpp>

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>

#include "json_text.hpp"

namespace poplar {

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
