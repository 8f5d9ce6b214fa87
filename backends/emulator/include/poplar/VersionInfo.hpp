// The version of the interface.
#ifndef SNNC_POPLAR_VERSION_INFO_HPP
#define SNNC_POPLAR_VERSION_INFO_HPP

#include <string>

namespace poplar {

/// The documented version that the emulator follows.
inline std::string versionString() { return "3.3.0 (snnc emulator)"; }
inline std::string packageHash() { return "snnc-emulator"; }

} // namespace poplar

#endif
