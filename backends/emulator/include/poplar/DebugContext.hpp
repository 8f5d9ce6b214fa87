// Names for error messages and profiles.
#ifndef SNNC_POPLAR_DEBUG_CONTEXT_HPP
#define SNNC_POPLAR_DEBUG_CONTEXT_HPP

#include <string>
#include <utility>

#include <poplar/SourceLocation.hpp>

namespace poplar {

class DebugContext {
public:
  DebugContext() = default;
  DebugContext(const char *name) : name_(name) {}
  DebugContext(std::string name) : name_(std::move(name)) {}
  DebugContext(const DebugContext &prefix, const std::string &name)
      : name_(prefix.name_.empty() ? name : name.empty() ? prefix.name_ : prefix.name_ + "/" + name) {}
  DebugContext(const DebugContext &prefix, const char *name) : DebugContext(prefix, std::string(name)) {}
  explicit DebugContext(const SourceLocation &) {}
  DebugContext(std::string name, const SourceLocation &) : name_(std::move(name)) {}
  const std::string &getPathName() const { return name_; }

private:
  std::string name_;
};

/// A name with the identity of what made it; the emulator keeps the name.
using DebugNameAndId = DebugContext;

/// What a library records of an operation; the emulator keeps the name of its context.
class DebugInfo {
public:
  DebugInfo(const DebugContext &context, std::string api) : context_(context), api_(std::move(api)) {}
  virtual ~DebugInfo() = default;
  std::string getPathName() const { return context_.getPathName(); }
  const std::string &getApi() const { return api_; }
  operator const DebugContext &() const { return context_; }

private:
  DebugContext context_;
  std::string api_;
};

} // namespace poplar

#endif
