// Names for error messages and profiles, and libraries' records of their operations.
#ifndef SNNC_POPLAR_DEBUG_CONTEXT_HPP
#define SNNC_POPLAR_DEBUG_CONTEXT_HPP

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <utility>

#include <poplar/ProfileValue.hpp>
#include <poplar/SourceLocation.hpp>
#include <poplar/StringRef.hpp>

namespace poplar {

using DebugId = std::uint64_t;
class DebugContext;

enum class DebugSerializationFormat { JSON, CBOR };

/// `path` and a name below it; either may be empty.
std::string joinedName(const std::string &path, const std::string &name);

/// The record of a library's operation: an identity, the name of its context, the library and values.
class DebugInfo {
public:
  DebugInfo(const DebugContext &context, std::string api);
  DebugInfo(const DebugInfo &) = delete;
  DebugInfo &operator=(const DebugInfo &) = delete;
  /// Writes the record to the file of initializeStreamer.
  virtual ~DebugInfo();
  DebugId getId() const { return id_; }
  DebugId getParentId() const { return parent_; }
  std::string getPathName() const { return name_; }
  const std::string &getApi() const { return api_; }
  bool setValue(std::string name, ProfileValue value);

  /// Records that end from now on are written to `fileName`, as JSON; CBOR is refused with invalid_option.
  static void initializeStreamer(const std::string &fileName, const DebugSerializationFormat &format = DebugSerializationFormat::JSON);
  /// Throws poplar_error if no file is open.
  static void closeStreamer();

private:
  DebugId id_, parent_;
  std::string name_, api_;
  SourceLocation location_;
  std::map<std::string, ProfileValue> values_;
};

/// A name and the identity of its creator.
class DebugNameAndId {
public:
  DebugNameAndId(std::string name, DebugId parent = 0, std::string parentPath = "") : DebugNameAndId(parent, joinedName(parentPath, name)) {}
  DebugNameAndId(const char *name, DebugId parent = 0, std::string parentPath = "") : DebugNameAndId(std::string(name), parent, std::move(parentPath)) {}
  DebugNameAndId(DebugId parent = 0, std::string path = "") : parent_(parent), path_(std::move(path)) {}
  DebugNameAndId(const DebugInfo &info, std::string name = "") : DebugNameAndId(info.getId(), joinedName(info.getPathName(), name)) {}
  DebugNameAndId(const DebugNameAndId &prefix, std::string name) : DebugNameAndId(prefix.parent_, joinedName(prefix.path_, name)) {}
  DebugId getParentId() const { return parent_; }
  std::string getName() const { return path_.substr(path_.rfind('/') + 1); }
  std::string getPathName() const { return path_; }

private:
  DebugId parent_;
  std::string path_;
};

class DebugContext {
public:
  DebugContext(SourceLocation location = SourceLocation::Current());
  DebugContext(const char *name, SourceLocation location = SourceLocation::Current());
  DebugContext(std::string name, SourceLocation location = SourceLocation::Current());
  DebugContext(StringRef name, SourceLocation location = SourceLocation::Current());
  DebugContext(const DebugInfo &info, std::string name = "", SourceLocation location = SourceLocation::Current());
  DebugContext(const DebugNameAndId &prefix, std::string name = "", SourceLocation location = SourceLocation::Current());
  DebugContext(const DebugContext &prefix, StringRef name);
  DebugContext(const DebugContext &other);
  DebugContext(DebugContext &&other) noexcept;
  DebugContext &operator=(const DebugContext &other);
  DebugContext &operator=(DebugContext &&other) noexcept;
  ~DebugContext();
  const std::string &getPathName() const { return name_; }
  DebugId getParentId() const { return parent_; }
  const SourceLocation &getLocation() const { return location_; }
  friend std::ostream &operator<<(std::ostream &os, const DebugContext &context) { return os << context.name_; }

private:
  std::string name_;
  DebugId parent_ = 0;
  SourceLocation location_;
};

} // namespace poplar

#endif
