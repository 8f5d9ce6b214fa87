// Gradients of parameters: every warp gathers the contributions to its own elements, so sums do not depend on the order of warps.
#ifndef SNNC_GRADIENTS_HPP
#define SNNC_GRADIENTS_HPP

#include "events.hpp"
#include "products.hpp"

namespace snnc {

/// Partial sums of a gradient over slices of the rows, [slice][number]; the update adds them in order.
struct Slices {
  float *data;
  int count, numbers;
  /// Number of rows per slice.
  int length;
  /// Whether it already contains the sums of later segments.
  bool more;
  DEVICE float &at(int slice, std::size_t number) const {
    return data[static_cast<std::size_t>(slice) * static_cast<std::size_t>(numbers) + number];
  }
  DEVICE void put(int slice, std::size_t number, float sum) const {
    float &place = at(slice, number);
    place = more ? place + sum : sum;
  }
  /// Returns these slices for a sum over all segments.
  DEVICE Slices whole() const { return {data, count, numbers, length, false}; }
  DEVICE int first(int slice, int rows) const { return least(rows, slice * length); }
};

/// gradient[m] = sum over the rows of matrix[row][m].
template <class Number> DEVICE void column_sums(const Matrix<Number> &matrix, int columns, int rows, const Slices &to, const Warp &warp) {
  constexpr int AHEAD = 8;
  const int chunks = whole_parts(columns, LANES);
  for (int at = warp.index; at < chunks * to.count; at += warp.count) {
    const int slice = at / chunks, m = at % chunks * LANES + warp.lane, last = to.first(slice + 1, rows);
    const int column = least(m, columns - 1);
    float sum = 0;
    int row = to.first(slice, rows);
    for (; row + AHEAD <= last; row += AHEAD) {
      float found[AHEAD];
      UNROLL(8)
      for (int j = 0; j < AHEAD; ++j)
        found[j] = matrix.row(row + j)[column];
      UNROLL(8)
      for (int j = 0; j < AHEAD; ++j)
        sum += found[j];
    }
    for (; row < last; ++row)
      sum += matrix.row(row)[column];
    if (m < columns)
      to.put(slice, static_cast<std::size_t>(m), sum);
  }
}

/// gradient[0] = sum over all rows and columns.
DEVICE void whole_sum(const float *matrix, int columns, int rows, const Slices &to, const Warp &warp) {
  for (int slice = warp.index; slice < to.count; slice += warp.count) {
    const std::size_t first = static_cast<std::size_t>(to.first(slice, rows)) * static_cast<std::size_t>(columns);
    const std::size_t last = static_cast<std::size_t>(to.first(slice + 1, rows)) * static_cast<std::size_t>(columns);
    float sum = 0;
    for (std::size_t i = first + static_cast<std::size_t>(warp.lane); i < last; i += LANES)
      sum += matrix[i];
    sum = warp_sum(sum);
    if (warp.lane == 0)
      to.put(slice, 0, sum);
  }
}

} // namespace snnc

#endif
