// The bits of halves on the host.
#ifndef SNNC_POPFLOAT_CAST_TO_HALF_HPP
#define SNNC_POPFLOAT_CAST_TO_HALF_HPP

#include <cstdint>
#include <cstring>
#include <limits>

#include <poplar/HalfFloat.hpp>

namespace popfloat {
namespace experimental {

inline float halfToSingle(std::uint16_t bits) {
  half value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<float>(value);
}

/// Rounded to nearest; what is too large becomes infinite, or the largest half where `clip` is set.
inline std::uint16_t singleToHalf(float value, bool = true, bool clip = false) {
  const float most = static_cast<float>(std::numeric_limits<half>::max());
  const half rounded = static_cast<half>(clip && value > most ? most : clip && value < -most ? -most : value);
  std::uint16_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

} // namespace experimental
} // namespace popfloat

#endif
