// SIMD vectors of the target CPU, through the vector types of the compiler.
#ifndef SNNC_VECTORS_HPP
#define SNNC_VECTORS_HPP

#include "bfloat16.hpp"
#include "constants.hpp"

#include <cstddef>
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace snnc {

// LANES: values in a vector. SUMS: vectors of a sum of rows in registers. TILE_ROWS x TILE_VECTORS: tile of a product in registers.
#if defined(__AVX512F__)
constexpr int LANES = 16, SUMS = 16, TILE_ROWS = 6, TILE_VECTORS = 4;
#elif defined(__AVX__)
constexpr int LANES = 8, SUMS = 10, TILE_ROWS = 6, TILE_VECTORS = 2;
#elif defined(__aarch64__)
constexpr int LANES = 4, SUMS = 16, TILE_ROWS = 6, TILE_VECTORS = 4;
#else
constexpr int LANES = 4, SUMS = 8, TILE_ROWS = 4, TILE_VECTORS = 2;
#endif

typedef float Vector __attribute__((vector_size(4 * LANES), may_alias));

inline Vector load(const float *from) { return *reinterpret_cast<const Vector *>(from); }
inline void store(float *to, Vector value) { *reinterpret_cast<Vector *>(to) = value; }
/// Loads and stores at unaligned addresses.
inline Vector load_anywhere(const float *from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store_anywhere(float *to, Vector value) { std::memcpy(to, &value, sizeof value); }
/// Subtracting zero changes no value, so the compiler only broadcasts.
inline Vector all(float value) { return value - Vector{}; }
inline Vector add_product(Vector sum, Vector left, Vector right) { return sum + left * right; }
/// Vector k of a row.
inline Vector vector_of(const float *row, int k) { return load(row + k * LANES); }
inline float sum_of_lanes(Vector vector) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(reinterpret_cast<__m512>(vector));
#elif defined(__AVX__)
  const __m256 whole = reinterpret_cast<__m256>(vector);
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(whole), _mm256_extractf128_ps(whole, 1));
  const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
#else
  float sum[LANES];
  std::memcpy(sum, &vector, sizeof sum);
  for (int half = LANES / 2; half != 0; half /= 2)
    for (int k = 0; k < half; ++k)
      sum[k] += sum[k + half];
  return sum[0];
#endif
}

/// Adds the sum of the lanes of vector i to sums[i].
inline void add_sums_of_lanes(float *sums, const Vector (&vectors)[4]) {
#if defined(__AVX__)
  __m256 half[4];
  for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
    const __m512d both = reinterpret_cast<__m512d>(vectors[i]);
    half[i] = _mm256_add_ps(_mm256_castpd_ps(_mm512_castpd512_pd256(both)), _mm256_castpd_ps(_mm512_extractf64x4_pd(both, 1)));
#else
    half[i] = reinterpret_cast<__m256>(vectors[i]);
#endif
  }
  const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(half[0], half[1]), _mm256_hadd_ps(half[2], half[3]));
  const __m128 whole = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
  _mm_storeu_ps(sums, _mm_add_ps(_mm_loadu_ps(sums), whole));
#else
  for (int i = 0; i < 4; ++i)
    sums[i] += sum_of_lanes(vectors[i]);
#endif
}

/// Pairs of bfloat16, the first of each in the lower half.
typedef std::uint32_t Pairs __attribute__((vector_size(4 * LANES), may_alias));

inline Pairs load(const std::uint32_t *from) { return *reinterpret_cast<const Pairs *>(from); }
inline Pairs all(std::uint32_t pair) { return Pairs{} + pair; }
inline Pairs vector_of(const std::uint32_t *row, int k) { return load(row + k * LANES); }
inline Vector firsts(Pairs pairs) { return reinterpret_cast<Vector>(pairs << 16); }
inline Vector seconds(Pairs pairs) { return reinterpret_cast<Vector>(pairs & 0xffff0000u); }
/// Adds products of pairs, which are exact in float32; the second product of each pair is added before the first.
inline Vector add_product(Vector sum, Pairs left, Pairs right) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<Vector>(
      _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(left), reinterpret_cast<__m512bh>(right)));
#else
  return sum + seconds(left) * seconds(right) + firsts(left) * firsts(right);
#endif
}

/// Chunk of a bfloat16 row for sums of rows: values k and LANES + k of each chunk are adjacent, so that vectors need no shuffle.
constexpr std::size_t CHUNK = 2 * LANES;
static_assert(CHUNK <= MAX_CHUNK);
constexpr std::size_t chunked(std::size_t n) { return (n + CHUNK - 1) / CHUNK * CHUNK; }
constexpr std::size_t place_in_chunks(std::size_t i) { return i / CHUNK * CHUNK + i % CHUNK % LANES * 2 + i % CHUNK / LANES; }
inline Vector vector_of(const BFloat16 *row, int k) {
  const Pairs pairs = *reinterpret_cast<const Pairs *>(row + k / 2 * static_cast<int>(CHUNK));
  return k % 2 == 0 ? firsts(pairs) : seconds(pairs);
}

/// Prefetches `count` elements into the L2 cache; the address need not be valid.
template <class T> inline void fetch(const T *from, std::size_t count) {
  for (std::size_t byte = 0; byte < count * sizeof(T); byte += 64)
    __builtin_prefetch(reinterpret_cast<const char *>(from) + byte, 0, 2);
}

} // namespace snnc

#endif
