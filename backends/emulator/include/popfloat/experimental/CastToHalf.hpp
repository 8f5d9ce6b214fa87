// The bits of halves on the host.
#ifndef SNNC_POPFLOAT_CAST_TO_HALF_HPP
#define SNNC_POPFLOAT_CAST_TO_HALF_HPP

#include <cstdint>

#include <poplar/IeeeHalf.hpp>

namespace popfloat {
namespace experimental {

inline float halfToSingle(std::uint16_t bits) { return poplar::IeeeHalf::fromBits(bits); }
/// Rounded to nearest; values that are too large become infinite, or the largest half if `clip` is set.
inline std::uint16_t singleToHalf(float value, bool = true, bool clip = false) {
  constexpr float most = 65504.f;
  return poplar::IeeeHalf(clip && value > most ? most : clip && value < -most ? -most : value).bit16();
}

} // namespace experimental
} // namespace popfloat

#endif
