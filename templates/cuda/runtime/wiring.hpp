// Connections given by tables: sparse, one to one, scales, averages, slices, padding, and maxima over windows.
#ifndef SNNC_WIRING_HPP
#define SNNC_WIRING_HPP

#include "gradients.hpp"

namespace snnc {

/// Entries sorted by target, source or weight: the first entry of each, then the number of entries; an entry is a pair (for a maximum, one index).
struct Wires {
  const std::uint32_t *begin, *entries;
  DEVICE int first(int i) const { return static_cast<int>(begin[i]); }
  DEVICE int one(int e) const { return static_cast<int>(entries[2 * e]); }
  DEVICE int other(int e) const { return static_cast<int>(entries[2 * e + 1]); }
};

/// Returns the sum over the entries (end, weight) of `i` of weight * values[end]: sorted by target forward, by source backward.
template <class Row> DEVICE float wired_sum(const Wires &wires, int i, const Row &values, const float *weights) {
  float sum = 0;
  for (int e = wires.first(i), last = wires.first(i + 1); e < last; ++e)
    sum = fmaf(weights[wires.other(e)], values[wires.one(e)], sum);
  return sum;
}

/// gradient[k] = sum over the rows and the entries (source, target) of weight k of source * delta; row `lead` of the source belongs to row 0.
template <bool FEW, class Source, class Number> DEVICE void wired_gradient(const Wires &wires, const Source &source, int lead,
                                                                           const Matrix<Number> &delta, int rows, const Slices &to,
                                                                           const Warp &warp) {
  // If weights have few entries, a lane processes a weight; otherwise, the lanes share its entries.
  const int parts = FEW ? whole_parts(to.numbers, LANES) : to.numbers;
  for (int at = warp.index; at < parts * to.count; at += warp.count) {
    const int slice = at / parts, k = FEW ? at % parts * LANES + warp.lane : at % parts, weight = least(k, to.numbers - 1);
    const int begin = to.first(slice, rows), end = to.first(slice + 1, rows);
    float sum = 0;
    for (int e = wires.first(weight) + (FEW ? 0 : warp.lane), last = wires.first(weight + 1); e < last; e += FEW ? 1 : LANES) {
      const int from = wires.one(e), target = wires.other(e);
      for (int row = begin; row < end; ++row)
        sum = fmaf(source.flat(static_cast<std::size_t>(lead + row))[from], delta.row(row)[target], sum);
    }
    if (!FEW)
      sum = warp_sum(sum);
    if (FEW ? k < to.numbers : warp.lane == 0)
      to.put(slice, static_cast<std::size_t>(weight), sum);
  }
}

/// Returns the index of the first maximum of a target.
template <class Row> DEVICE int largest(const Wires &wires, int target, const Row &values) {
  int best = static_cast<int>(wires.entries[wires.first(target)]);
  for (int e = wires.first(target) + 1, last = wires.first(target + 1); e < last; ++e) {
    const int other = static_cast<int>(wires.entries[e]);
    best = values[other] > values[best] ? other : best;
  }
  return best;
}

/// Returns the gradient of value i: the sum of the deltas of the targets that chose it.
template <class Row, class Number>
DEVICE float chosen_sum(const Wires &targets, const Wires &sources, int i, const Row &values, const Number *delta) {
  float sum = 0;
  for (int e = sources.first(i), last = sources.first(i + 1); e < last; ++e) {
    const int target = static_cast<int>(sources.entries[e]);
    sum += largest(targets, target, values) == i ? static_cast<float>(delta[target]) : 0.0f;
  }
  return sum;
}

} // namespace snnc

#endif
