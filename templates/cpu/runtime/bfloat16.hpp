// bfloat16: the upper half of a float32.
#ifndef SNNC_BFLOAT16_HPP
#define SNNC_BFLOAT16_HPP

#include <cstdint>
#include <cstring>

namespace snnc {

typedef std::uint16_t BFloat16;

/// Rounds to the nearest bfloat16 value, ties to even; NaN stays NaN.
inline BFloat16 rounded(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<BFloat16>(value != value ? 0x7fc0u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline float widened(BFloat16 number) {
  const std::uint32_t bits = static_cast<std::uint32_t>(number) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// Packs two values into a word, the first in the lower half.
constexpr std::uint32_t pair_of(BFloat16 first, BFloat16 second) {
  return static_cast<std::uint32_t>(first) | static_cast<std::uint32_t>(second) << 16;
}

} // namespace snnc

#endif
