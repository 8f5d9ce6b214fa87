// half in codelets: IEEE binary16, rounded after every operation. Host headers use poplar/IeeeHalf.hpp.
#ifndef SNNC_POPLAR_HALF_FLOAT_HPP
#define SNNC_POPLAR_HALF_FLOAT_HPP

#include <cmath>
#include <limits>
#include <type_traits>

#include <poplar/IeeeHalf.hpp>

using half = _Float16;

/// A literal of popc: 3.14_h.
constexpr half operator""_h(long double value) { return static_cast<half>(value); }
constexpr half operator""_h(unsigned long long value) { return static_cast<half>(value); }

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
// The standard library supports _Float16 since GCC 13.
namespace std {
#define SNNC_HALF_FUNCTION(name)                                                                                                 \
  inline half name(half x) { return static_cast<half>(std::name(static_cast<float>(x))); }
SNNC_HALF_FUNCTION(abs)
SNNC_HALF_FUNCTION(fabs)
SNNC_HALF_FUNCTION(sqrt)
SNNC_HALF_FUNCTION(exp)
SNNC_HALF_FUNCTION(log)
SNNC_HALF_FUNCTION(sin)
SNNC_HALF_FUNCTION(cos)
SNNC_HALF_FUNCTION(tan)
SNNC_HALF_FUNCTION(tanh)
SNNC_HALF_FUNCTION(floor)
SNNC_HALF_FUNCTION(ceil)
SNNC_HALF_FUNCTION(round)
SNNC_HALF_FUNCTION(trunc)
SNNC_HALF_FUNCTION(erf)
#undef SNNC_HALF_FUNCTION
inline half pow(half x, half y) { return static_cast<half>(std::pow(static_cast<float>(x), static_cast<float>(y))); }
inline half fmin(half x, half y) { return x < y ? x : y; }
inline half fmax(half x, half y) { return x > y ? x : y; }
inline bool isnan(half x) { return x != x; }
inline bool isinf(half x) { return std::isinf(static_cast<float>(x)); }
inline bool isfinite(half x) { return std::isfinite(static_cast<float>(x)); }
template <> struct is_floating_point<half> : true_type {};
template <> struct is_arithmetic<half> : true_type {};
template <> class numeric_limits<half> {
public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false, has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = 11, max_exponent = 16, min_exponent = -13;
  static constexpr half max() { return static_cast<half>(65504.f); }
  static constexpr half lowest() { return static_cast<half>(-65504.f); }
  static constexpr half min() { return static_cast<half>(6.103515625e-05f); }
  static constexpr half epsilon() { return static_cast<half>(0.0009765625f); }
  static constexpr half infinity() { return static_cast<half>(__builtin_inff()); }
  static constexpr half quiet_NaN() { return static_cast<half>(__builtin_nanf("")); }
};
} // namespace std
#endif

#endif
