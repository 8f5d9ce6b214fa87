#include "products.hpp"

#include <type_traits>

namespace snnc {

namespace {

/// Adds rows; N vectors of the target stay in registers.
template <int N, bool VALUED, class T> void add_rows_of(float *target, const T *rows, std::size_t stride, const List &list) {
  Vector sum[N];
#pragma GCC unroll 16
  for (int k = 0; k < N; ++k)
    sum[k] = load(target + k * LANES);
  for (std::size_t e = 0; e < list.count; ++e) {
    const T *row = rows + list.ids[e] * stride;
    if (VALUED) {
      const Vector value = all(list.values[e]);
#pragma GCC unroll 16
      for (int k = 0; k < N; ++k)
        sum[k] += value * vector_of(row, k);
    } else {
#pragma GCC unroll 16
      for (int k = 0; k < N; ++k)
        sum[k] += vector_of(row, k);
    }
  }
#pragma GCC unroll 16
  for (int k = 0; k < N; ++k)
    store(target + k * LANES, sum[k]);
}

/// Adds a row to all listed rows; N vectors of the row stay in registers.
template <int N, bool VALUED, class T> void spread_row_of(const T *row, float *rows, std::size_t stride, const List &list) {
  Vector given[N];
#pragma GCC unroll 16
  for (int k = 0; k < N; ++k)
    given[k] = vector_of(row, k);
  for (std::size_t e = 0; e < list.count; ++e) {
    float *to = rows + list.ids[e] * stride;
    const Vector value = all(VALUED ? list.values[e] : 1.0f);
#pragma GCC unroll 16
    for (int k = 0; k < N; ++k)
      store(to + k * LANES, load(to + k * LANES) + (VALUED ? value * given[k] : given[k]));
  }
}

/// Adds a row to all listed rows; the row does not fit in registers and is read from the L1 cache.
template <bool VALUED, class T> void spread_long_row(const T *row, int vectors, float *rows, std::size_t stride, const List &list) {
  for (std::size_t e = 0; e < list.count; ++e) {
    float *to = rows + list.ids[e] * stride;
    const Vector value = all(VALUED ? list.values[e] : 1.0f);
#pragma GCC unroll 8
    for (int k = 0; k < vectors; ++k)
      store(to + k * LANES, load(to + k * LANES) + (VALUED ? value * vector_of(row, k) : vector_of(row, k)));
  }
}

template <int N, class T> void add_rows_kind(float *target, const T *rows, std::size_t stride, const List &list) {
  if (list.values != nullptr)
    add_rows_of<N, true>(target, rows, stride, list);
  else
    add_rows_of<N, false>(target, rows, stride, list);
}

/// Reads DOTS rows of the list at a time, each completely: `fixed` is read from the L1 cache, and long runs of the rows load
/// faster than short ones. At the end of the list, its last row is repeated to fill the group.
template <class F, class T>
void add_any_dots(float *found, const F *fixed, std::size_t width, const T *rows, std::size_t stride, const List &list) {
  const int vectors = static_cast<int>(width / LANES);
  for (std::size_t e = 0; e < list.count; e += DOTS) {
    const T *row[DOTS];
    Vector sum[DOTS] = {};
#pragma GCC unroll 4
    for (std::size_t i = 0; i < DOTS; ++i)
      row[i] = rows + list.ids[std::min(e + i, list.count - 1)] * stride;
#pragma GCC unroll 8
    for (int k = 0; k < vectors; ++k) {
      const Vector kept = vector_of(fixed, k);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < DOTS; ++i)
        sum[i] += kept * vector_of(row[i], k);
    }
    add_sums_of_lanes(found + e, sum);
  }
}

/// M rows x N vectors of c stay in registers during the loop over k.
template <int M, int N, class A, class B>
void tile(std::size_t k, ViewOf<A> a, const B *b, std::size_t b_stride, float *c, std::size_t c_stride) {
  Vector sum[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j)
      sum[i][j] = load(c + static_cast<std::size_t>(i) * c_stride + j * LANES);
  for (std::size_t l = 0; l < k; ++l) {
    decltype(vector_of(b, 0)) right[N];
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j)
      right[j] = vector_of(b + l * b_stride, j);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const decltype(all(A{})) left = all(a.data[static_cast<std::size_t>(i) * a.down + l * a.along]);
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j)
        sum[i][j] = add_product(sum[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j)
      store(c + static_cast<std::size_t>(i) * c_stride + j * LANES, sum[i][j]);
}

/// Rows of a tile that fit in registers; unpacking pairs of bfloat16 needs registers for both halves.
template <class A> constexpr int HELD_ROWS = TILE_ROWS;
#if defined(__AVX__) && !defined(__AVX512F__)
template <> constexpr int HELD_ROWS<std::uint32_t> = 4;
#endif

/// Calls work(count) with the count, 1 ... N, as a compile-time constant.
template <int N, class Work> void with_constant(std::size_t count, const Work &work) {
  if constexpr (N > 1)
    if (count != N)
      return with_constant<N - 1>(count, work);
  work(std::integral_constant<int, N>());
}

/// Computes all rows of a strip of N vectors, in tiles of at most two sizes: in a small tile, additions would wait for each other.
template <int N, class A, class B>
void strip(std::size_t m, std::size_t k, ViewOf<A> a, const B *b, std::size_t b_stride, float *c, std::size_t c_stride) {
  constexpr std::size_t HELD = HELD_ROWS<A>;
  while (m != 0) {
    const std::size_t tiles = (m + HELD - 1) / HELD;
    const std::size_t rows = m >= tiles * (HELD - 1) ? (m + tiles - 1) / tiles : std::min(m, HELD);
    with_constant<HELD>(rows, [&](auto count) { tile<count(), N>(k, a, b, b_stride, c, c_stride); });
    m -= rows;
    a.data += rows * a.down;
    c += rows * c_stride;
  }
}

/// Calls work(number of vectors, first element) for parts of a width that fit in registers and are as equal as possible; the number of
/// vectors is a compile-time constant. In bfloat16, parts begin at chunks, which have two vectors.
template <class T, class Work> void in_parts(std::size_t width, const Work &work) {
  constexpr std::size_t WHOLE = sizeof(T) == sizeof(BFloat16) ? CHUNK / LANES : 1;
  static_assert(SUMS % WHOLE == 0, "a part of whole chunks fits in registers");
  const std::size_t vectors = width / LANES;
  std::size_t first = 0;
  for (std::size_t left = (vectors + SUMS - 1) / SUMS; left != 0; --left)
    with_constant<SUMS>(std::min(vectors - first, ((vectors - first + left - 1) / left + WHOLE - 1) / WHOLE * WHOLE), [&](auto count) {
      work(count, first * LANES);
      first += static_cast<std::size_t>(count());
    });
}

template <class T> void add_any_rows(float *target, std::size_t width, const T *rows, std::size_t stride, const List &list) {
  if (list.count == 0)
    return;
  in_parts<T>(width, [&](auto count, std::size_t first) { add_rows_kind<count()>(target + first, rows + first, stride, list); });
}

template <class T> void spread_any_row(const T *row, std::size_t width, float *rows, std::size_t stride, const List &list) {
  const int vectors = static_cast<int>(width / LANES);
  if (list.count == 0)
    return;
  if (vectors > SUMS)
    return list.values != nullptr ? spread_long_row<true>(row, vectors, rows, stride, list)
                                  : spread_long_row<false>(row, vectors, rows, stride, list);
  with_constant<SUMS>(static_cast<std::size_t>(vectors), [&](auto count) {
    if (list.values != nullptr)
      spread_row_of<count(), true>(row, rows, stride, list);
    else
      spread_row_of<count(), false>(row, rows, stride, list);
  });
}

template <class A, class B> void add_any_product(std::size_t m, std::size_t n, std::size_t k, ViewOf<A> a, const B *b, std::size_t b_stride,
                                                 float *c, std::size_t c_stride) {
  std::size_t vectors = n / LANES;
  const auto part = [&](auto count) {
    strip<count()>(m, k, a, b, b_stride, c, c_stride);
    vectors -= static_cast<std::size_t>(count());
    b += count() * LANES;
    c += count() * LANES;
  };
  while (vectors >= TILE_VECTORS)
    part(std::integral_constant<int, TILE_VECTORS>());
  while (vectors >= 2)
    part(std::integral_constant<int, 2>());
  if (vectors != 0)
    part(std::integral_constant<int, 1>());
}

/// to[c][r] = from[r][c]; rows of `to` are `stride` elements apart.
inline void turn(const float *const (&from)[BESIDE], float *to, std::size_t stride) {
#if defined(__AVX__)
  __m256 row[BESIDE], pair[BESIDE];
  for (std::size_t r = 0; r < BESIDE; ++r)
    row[r] = _mm256_loadu_ps(from[r]);
  for (std::size_t r = 0; r < BESIDE; r += 2) {
    pair[r] = _mm256_unpacklo_ps(row[r], row[r + 1]);
    pair[r + 1] = _mm256_unpackhi_ps(row[r], row[r + 1]);
  }
  for (std::size_t r = 0; r < BESIDE; r += 4) {
    row[r] = _mm256_shuffle_ps(pair[r], pair[r + 2], 0x44);
    row[r + 1] = _mm256_shuffle_ps(pair[r], pair[r + 2], 0xee);
    row[r + 2] = _mm256_shuffle_ps(pair[r + 1], pair[r + 3], 0x44);
    row[r + 3] = _mm256_shuffle_ps(pair[r + 1], pair[r + 3], 0xee);
  }
  for (std::size_t r = 0; r < 4; ++r) {
    _mm256_storeu_ps(to + r * stride, _mm256_permute2f128_ps(row[r], row[r + 4], 0x20));
    _mm256_storeu_ps(to + (r + 4) * stride, _mm256_permute2f128_ps(row[r], row[r + 4], 0x31));
  }
#else
  for (std::size_t c = 0; c < BESIDE; ++c)
    for (std::size_t r = 0; r < BESIDE; ++r)
      to[c * stride + r] = from[r][c];
#endif
}

} // namespace

void lay_beside(const float *const (&rows)[BESIDE], std::size_t columns, float *to, std::size_t stride) {
  for (std::size_t first = 0; first < columns; first += BESIDE) {
    const float *from[BESIDE];
    for (std::size_t r = 0; r < BESIDE; ++r)
      from[r] = rows[r] + first;
    turn(from, to + first * stride, stride);
  }
}

void set_from_beside(float *const (&rows)[BESIDE], std::size_t count, std::size_t columns, const float *from, std::size_t stride) {
  for (std::size_t first = 0; first < columns; first += BESIDE) {
    const float *given[BESIDE];
    float found[BESIDE * BESIDE];
    for (std::size_t c = 0; c < BESIDE; ++c)
      given[c] = from + (first + c) * stride;
    turn(given, found, BESIDE);
    for (std::size_t r = 0; r < count; ++r)
      std::memcpy(rows[r] + first, found + r * BESIDE, sizeof(float) * BESIDE);
  }
}

void add_rows(float *target, std::size_t width, const float *rows, std::size_t stride, const List &list) {
  add_any_rows(target, width, rows, stride, list);
}
void add_rows(float *target, std::size_t width, const BFloat16 *rows, std::size_t stride, const List &list) {
  add_any_rows(target, width, rows, stride, list);
}

void spread_row(const float *row, std::size_t width, float *rows, std::size_t stride, const List &list) {
  spread_any_row(row, width, rows, stride, list);
}
void spread_row(const BFloat16 *row, std::size_t width, float *rows, std::size_t stride, const List &list) {
  spread_any_row(row, width, rows, stride, list);
}

void add_dots(float *found, const float *fixed, std::size_t width, const float *rows, std::size_t stride, const List &list) {
  add_any_dots(found, fixed, width, rows, stride, list);
}
void add_dots(float *found, const BFloat16 *fixed, std::size_t width, const float *rows, std::size_t stride, const List &list) {
  add_any_dots(found, fixed, width, rows, stride, list);
}
void add_dots(float *found, const float *fixed, std::size_t width, const BFloat16 *rows, std::size_t stride, const List &list) {
  add_any_dots(found, fixed, width, rows, stride, list);
}

void add_product(std::size_t m, std::size_t n, std::size_t k, View a, const float *b, std::size_t b_stride, float *c,
                 std::size_t c_stride) {
  add_any_product(m, n, k, a, b, b_stride, c, c_stride);
}
void add_product(std::size_t m, std::size_t n, std::size_t k, View a, const BFloat16 *b, std::size_t b_stride, float *c,
                 std::size_t c_stride) {
  add_any_product(m, n, k, a, b, b_stride, c, c_stride);
}
void add_product(std::size_t m, std::size_t n, std::size_t k, ViewOf<std::uint32_t> a, const std::uint32_t *b, std::size_t b_stride,
                 float *c, std::size_t c_stride) {
  add_any_product(m, n, k, a, b, b_stride, c, c_stride);
}

} // namespace snnc
