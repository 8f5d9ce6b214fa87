// Functions of equations without branches and tables, so that compilers vectorise them (after the single-precision Cephes library).
// Compiler built-ins replace <cmath>: reading that header takes longer than compiling the equations of a network.
#ifndef SNNC_MATH_HPP
#define SNNC_MATH_HPP

#include <cstdint>
#include <cstring>

#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif

namespace snnc {
namespace equations {

inline float from_bits(std::int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float expf(float x) {
  const float bounded = x > 88.72f ? 88.72f : x < -104.0f ? -104.0f : x;
  const float n = __builtin_rintf(bounded * 1.44269504088896341f);
  const float r = bounded - n * 0.693359375f - n * -2.12194440e-4f;
  const float p = ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) * r + 1.6666665459e-1f) * r +
                  5.0000001201e-1f;
  // Two factors, so that results close to the largest and smallest float are representable.
  const std::int32_t whole = static_cast<std::int32_t>(n), half = whole / 2;
  const float value = (p * r * r + r + 1.0f) * from_bits((half + 127) << 23) * from_bits((whole - half + 127) << 23);
  return x > 88.72283f ? INFINITY : x != x ? x : value;
}

inline float tanhf(float x) {
  const float size = __builtin_fabsf(x), square = x * x;
  const float small =
      ((((-5.70498872745e-3f * square + 2.06390887954e-2f) * square - 5.37397155531e-2f) * square + 1.33314422036e-1f) * square -
       3.33332819422e-1f) *
          square * x +
      x;
  const float large = 1.0f - 2.0f / (expf(2.0f * size) + 1.0f);
  return size < 0.625f ? small : x < 0.0f ? -large : large;
}

inline float fminf(float a, float b) { return a < b || a != a ? a : b; }
inline float fmaxf(float a, float b) { return a > b || a != a ? a : b; }
inline float fabsf(float a) { return __builtin_fabsf(a); }
inline float sqrtf(float a) { return __builtin_sqrtf(a); }
inline float logf(float a) { return __builtin_logf(a); }
inline float powf(float a, float b) { return __builtin_powf(a, b); }
inline float erff(float a) { return __builtin_erff(a); }
inline float sinf(float a) { return __builtin_sinf(a); }
inline float cosf(float a) { return __builtin_cosf(a); }

} // namespace equations
} // namespace snnc

#endif
