#include "product.hpp"

#include <cstring>

namespace poplibs {

namespace {

/// As wide as AVX registers; compilers use several narrower registers if there are none.
typedef float Lanes __attribute__((vector_size(32)));
constexpr std::size_t width = sizeof(Lanes) / sizeof(float);

#define SNNC_INLINE inline __attribute__((always_inline))

/// `Rows` rows of 2 x width columns, whose sums stay in registers.
template <std::size_t Rows> SNNC_INLINE void tile(const float *x, const float *y, float *out, std::size_t k, std::size_t n) {
  Lanes sum[Rows][2] = {};
  for (std::size_t p = 0; p < k; ++p) {
    Lanes line[2];
    std::memcpy(line, y + p * n, sizeof line);
    for (std::size_t row = 0; row < Rows; ++row) {
      sum[row][0] += x[row * k + p] * line[0];
      sum[row][1] += x[row * k + p] * line[1];
    }
  }
  for (std::size_t row = 0; row < Rows; ++row)
    std::memcpy(out + row * n, sum[row], sizeof sum[row]);
}

/// Columns that do not fill a pair of registers.
SNNC_INLINE void rest(const float *x, const float *y, float *out, std::size_t k, std::size_t n, std::size_t columns) {
  float sum[2 * width] = {};
  for (std::size_t p = 0; p < k; ++p)
    for (std::size_t j = 0; j < columns; ++j)
      sum[j] += x[p] * y[p * n + j];
  std::memcpy(out, sum, columns * sizeof(float));
}

SNNC_INLINE void multiplyAll(const float *x, const float *y, float *out, std::size_t m, std::size_t k, std::size_t n) {
  std::size_t j = 0;
  for (; j + 2 * width <= n; j += 2 * width) {
    std::size_t i = 0;
    for (; i + 4 <= m; i += 4)
      tile<4>(x + i * k, y + j, out + i * n + j, k, n);
    for (; i < m; ++i)
      tile<1>(x + i * k, y + j, out + i * n + j, k, n);
  }
  for (std::size_t i = 0; i < m && j < n; ++i)
    rest(x + i * k, y + j, out + i * n + j, k, n, n - j);
}

#if defined(__x86_64__)
// Without fused operations, so that results are the same on every machine.
__attribute__((target("avx2,no-fma"))) void multiplyWide(const float *x, const float *y, float *out, std::size_t m, std::size_t k,
                                                         std::size_t n) {
  multiplyAll(x, y, out, m, k, n);
}
#endif

} // namespace

void multiplyBlock(const float *x, const float *y, float *out, std::size_t m, std::size_t k, std::size_t n) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2");
  if (wide)
    return multiplyWide(x, y, out, m, k, n);
#endif
  multiplyAll(x, y, out, m, k, n);
}

} // namespace poplibs
