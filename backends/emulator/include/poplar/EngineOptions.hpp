// Options of an engine, checked when they are set.
#ifndef SNNC_POPLAR_ENGINE_OPTIONS_HPP
#define SNNC_POPLAR_ENGINE_OPTIONS_HPP

#include <poplar/OptionFlags.hpp>

namespace poplar {

/// Throws invalid_option for a name that belongs to no documented group of options.
void requireEngineOptions(const OptionFlags &flags);

class EngineOptions : public OptionFlags {
public:
  EngineOptions() = default;
  explicit EngineOptions(const OptionFlags &flags) : OptionFlags(flags) { requireEngineOptions(flags); }
};

} // namespace poplar

#endif
