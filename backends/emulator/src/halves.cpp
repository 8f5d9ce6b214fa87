#include "halves.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace poplar::core {

namespace {

void widenOneByOne(const char *from, float *to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    half value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    to[i] = float(value);
  }
}

void narrowOneByOne(const float *from, char *to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const half value = half(from[i]);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

void roundOneByOne(float *values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    values[i] = float(half(values[i]));
}

#if defined(__x86_64__)
#define SNNC_F16C __attribute__((target("avx,f16c")))

SNNC_F16C void widenBlocks(const char *from, float *to, std::size_t n) {
  const std::size_t whole = n / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + 2 * i))));
  for (std::size_t i = whole; i < n; ++i) {
    unsigned short bits;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    to[i] = _cvtsh_ss(bits);
  }
}

SNNC_F16C void narrowBlocks(const float *from, char *to, std::size_t n) {
  const std::size_t whole = n / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  for (std::size_t i = whole; i < n; ++i) {
    const unsigned short bits = _cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(to + 2 * i, &bits, sizeof bits);
  }
}

SNNC_F16C void roundBlocks(float *values, std::size_t n) {
  const std::size_t whole = n / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8)
    _mm256_storeu_ps(values + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT)));
  for (std::size_t i = whole; i < n; ++i)
    values[i] = _cvtsh_ss(_cvtss_sh(values[i], _MM_FROUND_TO_NEAREST_INT));
}
#undef SNNC_F16C

bool askProcessor() { return __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c"); }
#else
constexpr auto widenBlocks = widenOneByOne;
constexpr auto narrowBlocks = narrowOneByOne;
constexpr auto roundBlocks = roundOneByOne;
bool askProcessor() { return false; }
#endif

} // namespace

bool convertsHalves() {
  static const bool itself = askProcessor();
  return itself;
}

void widen(const void *from, float *to, std::size_t n) {
  (convertsHalves() ? widenBlocks : widenOneByOne)(static_cast<const char *>(from), to, n);
}

void narrow(const float *from, void *to, std::size_t n) {
  (convertsHalves() ? narrowBlocks : narrowOneByOne)(from, static_cast<char *>(to), n);
}

void roundToHalf(float *values, std::size_t n) { (convertsHalves() ? roundBlocks : roundOneByOne)(values, n); }

} // namespace poplar::core
