// Compiler builtins of popc with a portable meaning, which any codelet may call without a header.
#ifndef SNNC_POPLAR_BUILTINS_HPP
#define SNNC_POPLAR_BUILTINS_HPP

#include <cmath>

#include <poplar/HalfFloat.hpp>
#include <poplar/ShortVectors.hpp>

extern "C" {
/// Cycles counted by the vertex that runs on this thread (defined in libpoplar).
extern __thread unsigned long long snnc_worker_cycles __attribute__((tls_model("initial-exec")));
/// The tile and the worker that this thread emulates.
extern __thread unsigned snnc_tile_id __attribute__((tls_model("initial-exec")));
extern __thread unsigned snnc_worker_id __attribute__((tls_model("initial-exec")));
/// State of the random numbers of the tile's workers.
extern __thread unsigned long long *snnc_random_states __attribute__((tls_model("initial-exec")));
}

#if !defined(__clang__)
#define __builtin_assume(condition) ((void)0)
#endif
#define __builtin_ipu_get_tile_id() (snnc_tile_id)
#define __builtin_ipu_get_scount_l() (static_cast<unsigned>(snnc_worker_cycles))
#define __builtin_ipu_get_scount_u() (static_cast<unsigned>(snnc_worker_cycles >> 32))
#define __builtin_ipu_is_worker_mode() (true)
#define __builtin_ipu_get(index) (snnc_worker_id)
#define __builtin_ipu_put(value, index) ((void)(value), (void)(index))
#define __builtin_ipu_uput(value, index) ((void)(value), (void)(index))

/// The next number of this tile's worker (splitmix64; Steele, Lea, Flood 2014), independent of the thread that runs it.
inline unsigned snnc_random32() {
  unsigned long long x = snnc_random_states[snnc_worker_id] += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<unsigned>((x ^ (x >> 31)) >> 32);
}
/// Uniform in [-0.5, 0.5).
inline float snnc_random_float() { return static_cast<float>(snnc_random32() >> 8) * 5.9604644775390625e-08f - 0.5f; }
/// Mean 0, standard deviation 1 (Box and Muller).
inline float snnc_random_normal() {
  const float radius = std::sqrt(-2.f * std::log(1.f - (snnc_random_float() + 0.5f)));
  return radius * std::cos(6.283185307179586f * snnc_random_float());
}
inline unsigned snnc_ipu_urand32() { return snnc_random32(); }
inline unsigned long long snnc_ipu_urand64() { return static_cast<unsigned long long>(snnc_random32()) << 32 | snnc_random32(); }
inline float snnc_ipu_urand_f32() { return snnc_random_float(); }
inline half snnc_ipu_urand_f16() { return static_cast<half>(snnc_random_float()); }
inline snnc_float2 snnc_ipu_f32v2grand() { return snnc_float2{snnc_random_normal(), snnc_random_normal()}; }
inline snnc_half2 snnc_ipu_f16v2grand() {
  return snnc_half2{static_cast<half>(snnc_random_normal()), static_cast<half>(snnc_random_normal())};
}

// For scalars and vectors, element by element; half is computed in float and rounded once.
#define SNNC_BUILTIN1(name, expression)                                                                                          \
  inline float snnc_plain_##name(float x) { return expression; }                                                                       \
  inline float snnc_ipu_##name(float x) { return snnc_plain_##name(x); }                                                          \
  inline half snnc_ipu_##name(half x) { return static_cast<half>(snnc_plain_##name(static_cast<float>(x))); }                     \
  SNNC_BUILTIN1_OF(name, snnc_float2, float, 2)                                                                                  \
  SNNC_BUILTIN1_OF(name, snnc_half2, half, 2)                                                                                    \
  SNNC_BUILTIN1_OF(name, snnc_half4, half, 4)
#define SNNC_BUILTIN1_OF(name, Vector, Scalar, size)                                                                             \
  inline Vector snnc_ipu_##name(Vector x) {                                                                                 \
    for (int i = 0; i < size; ++i)                                                                                               \
      x[i] = static_cast<Scalar>(snnc_plain_##name(static_cast<float>(x[i])));                                                         \
    return x;                                                                                                                    \
  }
SNNC_BUILTIN1(exp, std::exp(x))
SNNC_BUILTIN1(exp2, std::exp2(x))
SNNC_BUILTIN1(ln, std::log(x))
SNNC_BUILTIN1(log2, std::log2(x))
SNNC_BUILTIN1(tanh, std::tanh(x))
SNNC_BUILTIN1(sigm, 1.f / (1.f + std::exp(-x)))
SNNC_BUILTIN1(sqrt, std::sqrt(x))
SNNC_BUILTIN1(oorx, 1.f / std::sqrt(x))
SNNC_BUILTIN1(oox, 1.f / x)
#undef SNNC_BUILTIN1
#undef SNNC_BUILTIN1_OF

#define SNNC_BUILTIN2(name, expression)                                                                                          \
  inline float snnc_plain_##name(float x, float y) { return expression; }                                                              \
  inline float snnc_ipu_##name(float x, float y) { return snnc_plain_##name(x, y); }                                              \
  inline half snnc_ipu_##name(half x, half y) {                                                                             \
    return static_cast<half>(snnc_plain_##name(static_cast<float>(x), static_cast<float>(y)));                                         \
  }                                                                                                                              \
  SNNC_BUILTIN2_OF(name, snnc_float2, float, 2)                                                                                  \
  SNNC_BUILTIN2_OF(name, snnc_half2, half, 2)                                                                                    \
  SNNC_BUILTIN2_OF(name, snnc_half4, half, 4)
#define SNNC_BUILTIN2_OF(name, Vector, Scalar, size)                                                                             \
  inline Vector snnc_ipu_##name(Vector x, Vector y) {                                                                       \
    for (int i = 0; i < size; ++i)                                                                                               \
      x[i] = static_cast<Scalar>(snnc_plain_##name(static_cast<float>(x[i]), static_cast<float>(y[i])));                               \
    return x;                                                                                                                    \
  }
SNNC_BUILTIN2(max, std::fmax(x, y))
SNNC_BUILTIN2(min, std::fmin(x, y))
SNNC_BUILTIN2(absadd, std::fabs(x) + std::fabs(y))
SNNC_BUILTIN2(absmax, std::fmax(std::fabs(x), std::fabs(y)))
#undef SNNC_BUILTIN2
#undef SNNC_BUILTIN2_OF

inline int snnc_ipu_max(int x, int y) { return x > y ? x : y; }
inline int snnc_ipu_min(int x, int y) { return x < y ? x : y; }
inline unsigned snnc_ipu_andc(unsigned x, unsigned y) { return x & ~y; }
inline unsigned snnc_ipu_popc(unsigned x) { return static_cast<unsigned>(__builtin_popcount(x)); }
inline unsigned snnc_ipu_clz(unsigned x) { return x ? static_cast<unsigned>(__builtin_clz(x)) : 32; }
/// Clamped to the two elements of `range`.
inline float snnc_ipu_clamp(float x, snnc_float2 range) { return std::fmin(std::fmax(x, range[0]), range[1]); }
inline snnc_float2 snnc_ipu_clamp(snnc_float2 x, snnc_float2 range) {
  return snnc_float2{snnc_ipu_clamp(x[0], range), snnc_ipu_clamp(x[1], range)};
}
inline float snnc_ipu_sum(snnc_half2 x) { return static_cast<float>(x[0]) + static_cast<float>(x[1]); }
inline snnc_float2 snnc_ipu_sum(snnc_half4 x) {
  return snnc_float2{static_cast<float>(x[0]) + static_cast<float>(x[1]), static_cast<float>(x[2]) + static_cast<float>(x[3])};
}
inline float snnc_ipu_f16tof32(half x) { return static_cast<float>(x); }
inline snnc_float2 snnc_ipu_f16v2tof32(snnc_half2 x) { return snnc_float2{static_cast<float>(x[0]), static_cast<float>(x[1])}; }
inline half snnc_ipu_f32tof16(float x) { return static_cast<half>(x); }
inline snnc_half2 snnc_ipu_f32v2tof16(snnc_float2 x) { return snnc_half2{static_cast<half>(x[0]), static_cast<half>(x[1])}; }

// The compiler declares names that start with __builtin without overloads.
#define __builtin_ipu_exp snnc_ipu_exp
#define __builtin_ipu_exp2 snnc_ipu_exp2
#define __builtin_ipu_ln snnc_ipu_ln
#define __builtin_ipu_log2 snnc_ipu_log2
#define __builtin_ipu_tanh snnc_ipu_tanh
#define __builtin_ipu_sigm snnc_ipu_sigm
#define __builtin_ipu_sqrt snnc_ipu_sqrt
#define __builtin_ipu_oorx snnc_ipu_oorx
#define __builtin_ipu_oox snnc_ipu_oox
#define __builtin_ipu_max snnc_ipu_max
#define __builtin_ipu_min snnc_ipu_min
#define __builtin_ipu_absadd snnc_ipu_absadd
#define __builtin_ipu_absmax snnc_ipu_absmax
#define __builtin_ipu_urand32 snnc_ipu_urand32
#define __builtin_ipu_urand64 snnc_ipu_urand64
#define __builtin_ipu_urand_f32 snnc_ipu_urand_f32
#define __builtin_ipu_urand_f16 snnc_ipu_urand_f16
#define __builtin_ipu_f32v2grand snnc_ipu_f32v2grand
#define __builtin_ipu_f16v2grand snnc_ipu_f16v2grand
#define __builtin_ipu_andc snnc_ipu_andc
#define __builtin_ipu_popc snnc_ipu_popc
#define __builtin_ipu_clz snnc_ipu_clz
#define __builtin_ipu_clamp snnc_ipu_clamp
#define __builtin_ipu_sum snnc_ipu_sum
#define __builtin_ipu_f16tof32 snnc_ipu_f16tof32
#define __builtin_ipu_f16v2tof32 snnc_ipu_f16v2tof32
#define __builtin_ipu_f32tof16 snnc_ipu_f32tof16
#define __builtin_ipu_f32v2tof16 snnc_ipu_f32v2tof16

#endif
