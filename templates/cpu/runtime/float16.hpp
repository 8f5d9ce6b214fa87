// float16 (IEEE 754 binary16), converted without branches so that loops over values are vectorised.
#ifndef SNNC_FLOAT16_HPP
#define SNNC_FLOAT16_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace snnc {

/// Histories have 16 bits per value: bfloat16 or float16.
typedef std::uint16_t Float16;

inline float float_of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline std::uint32_t bits_of_float(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Rounds to the nearest float16 value, ties to even; overflow gives infinity; NaN stays NaN.
inline Float16 half_of(float value) {
  const std::uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  // Normal numbers: 13 bits of the fraction are rounded off, and the bias of the exponent decreases by 112.
  const std::uint32_t usual = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
  // Subnormal numbers: adding 1/2 rounds to multiples of 2^-24.
  const std::uint32_t small = bits_of_float(float_of_bits(size) + 0.5f) - bits_of_float(0.5f);
  const std::uint32_t large = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return static_cast<Float16>(sign | (size < 113u << 23 ? small : size >= 143u << 23 ? large : usual));
}
inline float float_of(Float16 number) {
  const std::uint32_t sign = (number & 0x8000u) << 16, size = number & 0x7fffu;
  // Subnormal numbers are multiples of 2^-24.
  const std::uint32_t small = bits_of_float(static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24f);
  const std::uint32_t usual = (size << 13) + (size >= 0x7c00u ? 224u << 23 : 112u << 23);
  return float_of_bits(sign | (size < 0x400u ? small : usual));
}

/// Stores the differences between a worker's rows of step `t` and an offset, which is one value or one per neuron.
template <class Worker, class Rows, class History> void keep_halves(const Worker &w, const Rows &from, int t, History &to, float centre) {
  for (int b = w.first; b < w.first + w.count; ++b)
    for (std::size_t i = 0; i < from.size; ++i)
      to.row(t, b)[i] = half_of(from.row(t, b)[i] - centre);
}
template <class Worker, class Rows, class History>
void keep_halves(const Worker &w, const Rows &from, int t, History &to, const float *centres) {
  for (int b = w.first; b < w.first + w.count; ++b)
    for (std::size_t i = 0; i < from.size; ++i)
      to.row(t, b)[i] = half_of(from.row(t, b)[i] - centres[i]);
}

} // namespace snnc

#endif
