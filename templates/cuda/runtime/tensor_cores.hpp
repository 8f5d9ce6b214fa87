// Dense products with 16-bit factors and float32 sums, in fragments, on tensor cores if the device supports them.
#ifndef SNNC_TENSOR_CORES_HPP
#define SNNC_TENSOR_CORES_HPP

#include "half.hpp"
#include "learned.hpp"
#include "near.hpp"
#include "spikes.hpp"

namespace snnc {

/// Rows of a fragment of weights, and its depth.
constexpr int FRAGMENT_ROWS = 16, FRAGMENT_DEPTH = 16;

/// Rows, and pairs per row, of the copy that add_fragments reads: whole fragments, padded with 0.
ANYWHERE constexpr int half_rows(int rows) { return (rows + LANES - 1) / LANES * LANES; }
ANYWHERE constexpr int half_pairs(int depth) { return (depth + FRAGMENT_DEPTH - 1) / FRAGMENT_DEPTH * FRAGMENT_DEPTH / 2; }

/// Writes a matrix as rounded, whole fragments; elements of a row are `along` apart, rows `down`.
template <class Half> DEVICE void round_fragments(const float *matrix, int rows, int depth, int down, int along, std::uint32_t *copy) {
  const int pairs = half_pairs(depth);
  for_each_number(half_rows(rows) * pairs, [=](int i) {
    const int row = i / pairs, column = i % pairs * 2;
    const float *own = matrix + static_cast<std::size_t>(least(row, rows - 1)) * static_cast<std::size_t>(down);
    float found[2];
    for (int j = 0; j < 2; ++j)
      found[j] = row < rows && column + j < depth
                     ? Half::bounded(own[static_cast<std::size_t>(column + j) * static_cast<std::size_t>(along)])
                     : 0.0f;
    copy[i] = Half::pair(found[0], found[1]);
  });
}

/// Rounds numbers one by one.
template <class Half> DEVICE void round_numbers(const float *numbers, int count, Short<Half> *copy) {
  for_each_number(count, [=](int i) { copy[i].bits = static_cast<std::uint16_t>(Half::of(Half::bounded(numbers[i]))); });
}

/// Padding after each row of fragments in shared memory, in pairs, so that eight rows are in different banks.
constexpr int APART = 4;

/// The rows of a warp's neurons, in shared or global memory.
struct Fragments {
  const std::uint32_t *rows;
  int stride;
};

template <int TILE> DEVICE Fragments fragments_of(const Near &near, const std::uint32_t *matrix, int pairs, const Item<TILE> &item) {
  const int chunk = item.neuron / LANES;
  if (!near.there())
    return {matrix + static_cast<std::size_t>(chunk * LANES) * static_cast<std::size_t>(pairs), pairs};
  return {reinterpret_cast<const std::uint32_t *>(shared_memory()) + near.offset + chunk / near.step * LANES * (pairs + APART),
          pairs + APART};
}

/// Copies the rows that the block's warps read to shared memory.
DEVICE void fetch_fragments(const Near &near, const std::uint32_t *matrix, int pairs, const Team &team, int taken) {
  if (!near.there())
    return;
  std::uint32_t *to = reinterpret_cast<std::uint32_t *>(shared_memory()) + near.offset;
  const int first = first_chunk(near, team, taken);
  for (int i = thread_index(); i < near.width * pairs; i += block_size()) {
    const int row = i / pairs, from = (first + row / LANES * near.step) * LANES + row % LANES;
    to[row * (pairs + APART) + i % pairs] =
        matrix[static_cast<std::size_t>(from) * static_cast<std::size_t>(pairs) + static_cast<std::size_t>(i % pairs)];
  }
}

/// A row of numbers of a lane's sample as factors of a fragment; null: no row.
template <class Half, class Number> struct NumberRow {
  static constexpr bool SCALED = Half::NARROW;
  const Number *row;
  int depth;

  /// Reads factors first + 2 part, the next one, and the two that are 8 higher; their products must be multiplied by `scale`.
  DEVICE bool read(int first, int part, std::uint32_t (&pairs)[2], float &scale) const {
    float found[4];
    UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      const int k = first + 2 * part + i % 2 + i / 2 * 8;
      found[i] = row != nullptr && k < depth ? static_cast<float>(row[k]) : 0.0f;
    }
    const bool some = found[0] != 0.0f || found[1] != 0.0f || found[2] != 0.0f || found[3] != 0.0f;
    if (SCALED) {
      // A power of two for each sixteen factors of a sample: none overflows, and only values below 2^-24 of the largest underflow.
      float largest = fmaxf(fmaxf(fabsf(found[0]), fabsf(found[1])), fmaxf(fabsf(found[2]), fabsf(found[3])));
      largest = fmaxf(largest, shuffle_xor(largest, 1));
      largest = fmaxf(largest, shuffle_xor(largest, 2));
      const int exponent = most(1, least(253, static_cast<int>(bits_of(largest) >> 23)));
      const float down = number_of(static_cast<std::uint32_t>(254 - exponent) << 23);
      scale = number_of(static_cast<std::uint32_t>(exponent) << 23);
      UNROLL(4)
      for (int i = 0; i < 4; ++i)
        found[i] *= down;
    }
    pairs[0] = Half::pair(found[0], found[1]);
    pairs[1] = Half::pair(found[2], found[3]);
    return some;
  }
};

/// A row of spikes (0 or 1) of a lane's sample as factors of a fragment.
template <class Half> struct SpikeRow {
  static constexpr bool SCALED = false;
  const std::uint32_t *words;

  DEVICE bool read(int first, int part, std::uint32_t (&pairs)[2], float &) const {
    const std::uint32_t bits = words != nullptr ? words[first / 32] >> (first % 32 + 2 * part) : 0;
    pairs[0] = (bits & 1u) * Half::ONE | (bits >> 1 & 1u) * (Half::ONE << 16);
    pairs[1] = (bits >> 8 & 1u) * Half::ONE | (bits >> 9 & 1u) * (Half::ONE << 16);
    return (bits & 0x303u) != 0;
  }
};

/// Adds to the sums of a port, for the warp's neurons and samples, the sum over k < depth of matrix[neuron][k] * left[sample][k].
template <class Half, int TILE, class Row>
DEVICE void add_fragments(const Item<TILE> &item, int port, const Row &left, int depth, const Fragments &matrix) {
  const int group = item.lane / 4, part = item.lane % 4;
  const std::uint32_t *rows = matrix.rows + group * matrix.stride + part;
  float sums[2][4] = {};
  for (int first = 0; first < depth; first += FRAGMENT_DEPTH) {
    std::uint32_t b[2];
    float scale = 1;
    // Sixteen factors that are 0 in all samples are skipped.
    if (ballot(left.read(first, part, b, scale)) == 0)
      continue;
    const float left_scale = Row::SCALED ? shuffle(scale, part * 8) : 1.0f, right_scale = Row::SCALED ? shuffle(scale, part * 8 + 4) : 1.0f;
    UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t *upper = rows + half * FRAGMENT_ROWS * matrix.stride + first / 2;
      const std::uint32_t *lower = upper + FRAGMENT_ROWS / 2 * matrix.stride;
      const std::uint32_t a[4] = {upper[0], lower[0], upper[4], lower[4]};
      if (Row::SCALED) {
        float products[4] = {};
        Half::multiply(products, a, b, item.lane);
        UNROLL(4)
        for (int i = 0; i < 4; ++i)
          sums[half][i] = fmaf(products[i], i % 2 == 0 ? left_scale : right_scale, sums[half][i]);
      } else {
        Half::multiply(sums[half], a, b, item.lane);
      }
    }
  }
  sync_warp();
  UNROLL(2)
  for (int half = 0; half < 2; ++half)
    UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    const int neuron = half * FRAGMENT_ROWS + i / 2 * 8 + group, sample = 2 * part + i % 2;
    if (sample < TILE)
      item.sums[(port * TILE + sample) * LANES + neuron] += sums[half][i];
  }
  sync_warp();
}

/// Adds to the sums as add_fragments does, for rows of numbers.
template <class Half, int TILE, class Number>
DEVICE void add_half_product(const Item<TILE> &item, int port, const Matrix<Number> &left, int depth, const Fragments &matrix) {
  const int group = item.lane / 4;
  add_fragments<Half>(item, port, NumberRow<Half, Number>{group < item.samples ? left.row(group) : nullptr, depth}, depth, matrix);
}

/// Whole fragments are read for a sample if at least one in this many of its inputs fires: a read of fragments serves MAX_TILE samples, and
/// from this activity on it needs fewer bytes than the rows selected by spikes.
constexpr int WHOLE_FROM = MAX_TILE;

/// Adds the weight rows selected by spikes: from `chosen`, [inputs][outputs], if few fire, else in fragments. The choice is made per sample,
/// for its whole sum.
template <class Half, int TILE> DEVICE void add_half_spikes(const Item<TILE> &item, int port, const std::uint32_t *spikes, int inputs,
                                                            const Short<Half> *chosen, int outputs, const std::uint32_t *fragments,
                                                            const Warp &warp) {
  const int group = item.lane / 4, words = whole_parts(inputs, 32);
  const std::uint32_t *own = spikes + static_cast<std::size_t>(group) * static_cast<std::size_t>(words);
  std::uint32_t whole = 0;
  if (TILE > 1) {
    int fired = 0;
    for (int i = item.lane % 4; group < item.samples && i < words; i += 4)
      fired += bits_set(own[i]);
    fired += shuffle_xor(fired, 1);
    fired += shuffle_xor(fired, 2);
    whole = ballot(static_cast<long long>(fired) * WHOLE_FROM >= inputs);
  }
  UNROLL(1)
  for (int s = 0; s < item.samples; ++s)
    if ((whole >> (4 * s) & 1u) == 0)
      add_listed(item, port, s, spikes + static_cast<std::size_t>(s) * static_cast<std::size_t>(words), 0, inputs, chosen, outputs,
                 item.column, warp);
  if (whole != 0)
    add_fragments<Half>(item, port, SpikeRow<Half>{(whole >> item.lane & 1u) != 0 ? own : nullptr}, inputs,
                        fragments_of(Near(), fragments, half_pairs(inputs), item));
}

} // namespace snnc

#endif
