// Products of rows of numbers with matrices; inputs that are 0 in all rows of a tile are skipped.
#ifndef SNNC_PRODUCTS_HPP
#define SNNC_PRODUCTS_HPP

#include "teams.hpp"

namespace snnc {

/// A left factor, given by the distances between its elements from row to row and along a row.
struct View {
  const float *data;
  std::size_t down, along;
};

/// Adds the chosen rows from the `j`-th on, times the factors of the samples, in groups of AHEAD rows, which are loaded together.
template <int AHEAD, int TILE, class Number> DEVICE void add_groups(float (&sums)[TILE], int &j, int count, const float *factors,
                                                                    const Number *below, const std::uint16_t *chosen, int stride) {
  for (; j + AHEAD <= count; j += AHEAD) {
    float found[AHEAD];
    UNROLL(32)
    for (int i = 0; i < AHEAD; ++i)
      found[i] = below[static_cast<std::size_t>(chosen[j + i]) * static_cast<std::size_t>(stride)];
    UNROLL(32)
    for (int i = 0; i < AHEAD; ++i)
      UNROLL(8)
    for (int s = 0; s < TILE; ++s)
      sums[s] = fmaf(factors[(j + i) * TILE + s], found[i], sums[s]);
  }
}

/// sums[s] += sum over k < depth of left[s][k] * matrix[k][column], for s < rows; each element of the matrix is read once for all rows.
template <int TILE, class Number> DEVICE void add_product(float (&sums)[TILE], const View &left, int rows, int depth, const Number *matrix,
                                                          int stride, int column, const Warp &warp) {
  float *factors = warp.factors();
  std::uint16_t *chosen = warp.ids + LANES * TILE * 2;
  for (int first = 0; first < depth; first += LANES) {
    const int k = first + warp.lane;
    float own[TILE];
    bool some = false;
    UNROLL(8)
    for (int s = 0; s < TILE; ++s) {
      own[s] = k < depth && s < rows ? left.data[static_cast<std::size_t>(s) * left.down + static_cast<std::size_t>(k) * left.along] : 0.0f;
      some = some || own[s] != 0.0f;
    }
    const std::uint32_t all = ballot(some);
    const int count = bits_set(all), place = bits_set(all & ((1u << warp.lane) - 1u));
    if (some) {
      chosen[place] = static_cast<std::uint16_t>(warp.lane);
      UNROLL(8)
      for (int s = 0; s < TILE; ++s)
        factors[place * TILE + s] = own[s];
    }
    sync_warp();
    const Number *below = matrix + static_cast<std::size_t>(first) * static_cast<std::size_t>(stride) + column;
    int j = 0;
    // With a single sample, there are enough registers to load all rows of a group.
    add_groups<TILE == 1 ? LANES : LANES / 2>(sums, j, count, factors, below, chosen, stride);
    add_groups<8>(sums, j, count, factors, below, chosen, stride);
    add_groups<1>(sums, j, count, factors, below, chosen, stride);
    sync_warp();
  }
}

} // namespace snnc

#endif
