// Sums of rows and matrix products, in which a training step spends most of its time.
#ifndef SNNC_PRODUCTS_HPP
#define SNNC_PRODUCTS_HPP

#include "values.hpp"
#include "vectors.hpp"

namespace snnc {

/// target[0 ... width) += sum over the list of value * rows[id * stride ...]; width is a multiple of a line; rows are aligned to lines.
void add_rows(float *target, std::size_t width, const float *rows, std::size_t stride, const List &list);
void add_rows(float *target, std::size_t width, const BFloat16 *rows, std::size_t stride, const List &list);

/// rows[id * stride ...] += value * row[0 ... width) for the list's ids; width is a multiple of a line; rows are aligned to lines.
void spread_row(const float *row, std::size_t width, float *rows, std::size_t stride, const List &list);
void spread_row(const BFloat16 *row, std::size_t width, float *rows, std::size_t stride, const List &list);

/// Number of rows whose products with one row are interleaved, so that additions need not wait for each other.
constexpr std::size_t DOTS = 4;
/// found[k] += the product of `fixed` and the list's row k, both of length `width`, which is a multiple of a line; all rows are aligned
/// to lines. Up to DOTS - 1 elements after the last of `found` change, too.
void add_dots(float *found, const float *fixed, std::size_t width, const float *rows, std::size_t stride, const List &list);
void add_dots(float *found, const BFloat16 *fixed, std::size_t width, const float *rows, std::size_t stride, const List &list);
void add_dots(float *found, const float *fixed, std::size_t width, const BFloat16 *rows, std::size_t stride, const List &list);

/// A matrix or part of a matrix, given by the distances between its elements along columns and rows.
template <class T> struct ViewOf {
  const T *data;
  std::size_t down, along;
};
using View = ViewOf<float>;

/// c[m x n] += a[m x k] b[k x n]; n is a multiple of a line; rows of b and c are aligned to lines, `b_stride` and `c_stride` apart.
void add_product(std::size_t m, std::size_t n, std::size_t k, View a, const float *b, std::size_t b_stride, float *c, std::size_t c_stride);
void add_product(std::size_t m, std::size_t n, std::size_t k, View a, const BFloat16 *b, std::size_t b_stride, float *c,
                 std::size_t c_stride);
/// c += a b for pairs of bfloat16: elements 2 k and 2 k + 1 of a row of `a`, and of a column of `b`.
void add_product(std::size_t m, std::size_t n, std::size_t k, ViewOf<std::uint32_t> a, const std::uint32_t *b, std::size_t b_stride,
                 float *c, std::size_t c_stride);

/// Interleaves rows: to[column * stride + r] = rows[r][column], for a multiple of a line of columns.
constexpr std::size_t BESIDE = 8;
void lay_beside(const float *const (&rows)[BESIDE], std::size_t columns, float *to, std::size_t stride);
/// rows[r][column] = from[column * stride + r], for the first `count` rows.
void set_from_beside(float *const (&rows)[BESIDE], std::size_t count, std::size_t columns, const float *from, std::size_t stride);

/// Columns of a packed matrix, [panel][row][PACKED]: as many as a tile of a product, so that the tile reads one contiguous run.
constexpr std::size_t PACKED = std::max<std::size_t>(TILE_VECTORS * LANES, LINE);
static_assert(PACKED <= MAX_PACKED);

} // namespace snnc

#endif
