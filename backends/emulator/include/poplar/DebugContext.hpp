// Names for error messages and profiles.
#ifndef SNNC_POPLAR_DEBUG_CONTEXT_HPP
#define SNNC_POPLAR_DEBUG_CONTEXT_HPP

#include <string>
#include <utility>

namespace poplar {

class DebugContext {
public:
  DebugContext() = default;
  DebugContext(const char *name) : name_(name) {}
  DebugContext(std::string name) : name_(std::move(name)) {}
  DebugContext(const DebugContext &prefix, const std::string &name)
      : name_(prefix.name_.empty() ? name : name.empty() ? prefix.name_ : prefix.name_ + "/" + name) {}
  DebugContext(const DebugContext &prefix, const char *name) : DebugContext(prefix, std::string(name)) {}
  const std::string &getPathName() const { return name_; }

private:
  std::string name_;
};

/// A name with the identity of what made it; the emulator keeps the name.
using DebugNameAndId = DebugContext;

} // namespace poplar

#endif
