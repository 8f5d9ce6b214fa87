// Sums of the weight rows that the spikes of a tile of samples select: by a list per sample, or by one list for all if many fire together.
#ifndef SNNC_SPIKES_HPP
#define SNNC_SPIKES_HPP

#include "events.hpp"
#include "near.hpp"

namespace snnc {

/// Adds to the sum of sample `s` the rows selected by bits first ... last - 1 (at most LISTED); bit i selects row i.
template <int TILE, class Number> DEVICE void add_listed(const Item<TILE> &item, int port, int s, const std::uint32_t *words, int first,
                                                         int last, const Number *matrix, int stride, int column, const Warp &warp) {
  float &sum = item.sum(port, s);
  for (int start = first; start < last; start += LISTED) {
    const std::uint32_t word = word_between(words, start + warp.lane * 32, first, last);
    if (ballot(word != 0) != 0)
      sum = add_rows(sum, list_bits(word, warp.lane, warp.ids),
                     matrix + static_cast<std::size_t>(start) * static_cast<std::size_t>(stride) + column, stride, warp);
  }
}

/// Adds the rows selected by the lanes' words; each row is read once for all samples (`any`: the bits of all samples). Sums equal those of add_listed.
template <int TILE> DEVICE void add_shared(const Item<TILE> &item, int port, const std::uint32_t (&own)[TILE], std::uint32_t any,
                                           const float *rows, int stride) {
  constexpr int AHEAD = 8;
  float sums[TILE];
  UNROLL(8)
  for (int s = 0; s < TILE; ++s)
    sums[s] = item.sum(port, s);
  UNROLL(1)
  for (int lane = 0; lane < LANES; ++lane) {
    std::uint32_t left = shuffle(any, lane), fired[TILE];
    UNROLL(8)
    for (int s = 0; s < TILE; ++s)
      fired[s] = shuffle(own[s], lane);
    const float *below = rows + static_cast<std::size_t>(lane * 32) * static_cast<std::size_t>(stride);
    while (left != 0) {
      std::uint32_t bit[AHEAD];
      float found[AHEAD];
      UNROLL(8)
      for (int i = 0; i < AHEAD; ++i) {
        bit[i] = left & (0u - left);
        left ^= bit[i];
        found[i] = bit[i] != 0 ? below[static_cast<std::size_t>(lowest_bit(bit[i])) * static_cast<std::size_t>(stride)] : 0.0f;
      }
      UNROLL(8)
      for (int i = 0; i < AHEAD; ++i)
        UNROLL(8)
      for (int s = 0; s < TILE; ++s)
        sums[s] += (fired[s] & bit[i]) != 0 ? found[i] : 0.0f;
    }
  }
  UNROLL(8)
  for (int s = 0; s < TILE; ++s)
    item.sum(port, s) = sums[s];
}

/// Cost of a row that is read by lists, SHARED_ROWS, relative to a row that is read once for all samples and then distributed, LISTED_ROWS: on
/// an H100, a warp took 57 and 82 cycles for a row.
constexpr int LISTED_ROWS = 3, SHARED_ROWS = 2;

/// Adds the rows of weights [inputs][…] that the spikes of each sample select. Both methods add the same rows in the same order.
template <int TILE>
DEVICE void add_chosen(const Item<TILE> &item, int port, const std::uint32_t *spikes, int inputs, const Columns &matrix, const Warp &warp) {
  const std::size_t words = static_cast<std::size_t>(whole_parts(inputs, 32));
  for (int start = 0; start < inputs; start += LISTED) {
    if (TILE > 1) {
      std::uint32_t own[TILE], any = 0;
      int fired = 0;
      UNROLL(8)
      for (int s = 0; s < TILE; ++s) {
        own[s] = s < item.samples ? word_between(spikes + static_cast<std::size_t>(s) * words, start + warp.lane * 32, 0, inputs) : 0;
        any |= own[s];
        fired += bits_set(own[s]);
      }
      const int counts = warp_sum(fired << 16 | bits_set(any)), rows = counts & 0xffff;
      if (rows == 0)
        continue;
      if ((counts >> 16) * SHARED_ROWS > rows * LISTED_ROWS) {
        add_shared(item, port, own, any,
                   matrix.data + static_cast<std::size_t>(start) * static_cast<std::size_t>(matrix.stride) + matrix.column, matrix.stride);
        continue;
      }
    }
    UNROLL(1)
    for (int s = 0; s < item.samples; ++s)
      add_listed(item, port, s, spikes + static_cast<std::size_t>(s) * words, start, least(inputs, start + LISTED), matrix.data,
                 matrix.stride, matrix.column, warp);
  }
}

} // namespace snnc

#endif
