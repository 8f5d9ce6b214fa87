// Options of a run, such as how the host waits for a sync. The emulator's runs do not depend on them.
#ifndef SNNC_POPLAR_RUNTIME_OPTIONS_HPP
#define SNNC_POPLAR_RUNTIME_OPTIONS_HPP

#include <poplar/EngineOptions.hpp>

namespace poplar {

class RuntimeOptions : public OptionFlags {
public:
  RuntimeOptions() = default;
  explicit RuntimeOptions(const OptionFlags &flags) : OptionFlags(flags) { requireEngineOptions(flags); }
};

} // namespace poplar

#endif
