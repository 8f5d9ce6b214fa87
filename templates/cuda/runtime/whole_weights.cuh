// Weights for products over a whole sequence: split into 16-bit parts, in the order in which blocks read them.
//
// [strip of 128 outputs][step of 32 depths][part][8 outputs][8 depths][output][depth], padded with 0: the data of a step of a block are contiguous.
#ifndef SNNC_WHOLE_WEIGHTS_CUH
#define SNNC_WHOLE_WEIGHTS_CUH

#include "whole_tiles.cuh"

namespace snnc {

/// Bytes of one part of a strip in one step.
constexpr int PLANE_BYTES = STRIP / 8 * GROUP_BYTES;

/// A matrix of `depths` by `outputs` numbers; the numbers of an output are `along` apart, outputs `across`.
struct WeightView {
  const float *data;
  int depths, outputs;
  std::size_t along, across;
  DEVICE float at(int depth, int output) const {
    return depth < depths && output < outputs ? data[static_cast<std::size_t>(depth) * along + static_cast<std::size_t>(output) * across]
                                              : 0.0f;
  }
};

/// Eight numbers of an output, split into parts.
template <int PARTS> struct PreparedRow {
  std::uint32_t parts[4][PARTS];

  DEVICE void store(char *planes, int steps, int output, int step, int matrix) const {
    char *to = planes +
               (static_cast<std::size_t>(output / STRIP) * static_cast<std::size_t>(steps) + static_cast<std::size_t>(step)) *
                   (PARTS * PLANE_BYTES) +
               output % STRIP / 8 * GROUP_BYTES + matrix * MATRIX_BYTES + output % 8 * 16;
    UNROLL(3)
    for (int p = 0; p < PARTS; ++p) {
#if defined(SNNC_ON_HOST)
      for (int i = 0; i < 4; ++i)
        std::memcpy(to + p * PLANE_BYTES + 4 * i, &parts[i][p], 4);
#else
      *reinterpret_cast<uint4 *>(to + p * PLANE_BYTES) = make_uint4(parts[0][p], parts[1][p], parts[2][p], parts[3][p]);
#endif
    }
  }
};

/// Returns the depths of pair `at` in the order for spikes: bits of a word that are 16 apart.
DEVICE int spike_depth(int at, int second) { return at + 16 * second; }
/// Returns the depths of pair `at` in the order for numbers, which lanes read four at a time.
DEVICE int number_depth(int at, int second) { return at / 8 * 16 + at % 4 * 4 + at / 4 % 2 * 2 + second; }

/// The large part of a weight is a multiple of 2^-11 of the range of its column, so sums of large parts are exact. The small part has 12 more bits.
constexpr float SMALL_PART = 1.0f / 4096;

/// A weight, and where its parts and the scales of its columns are stored.
struct WeightParts {
  WeightView weights;
  int steps;
  char *planes;
  float *scales;
};

/// A block splits a share of 32 columns for products with spikes: first it finds their ranges, then their parts. `SCALED`: a power of two per
/// column puts its largest weight near `LARGEST`: for one part near the end of the range of float16, so that weights down to 2^-28 of it
/// keep 11 bits.
template <int PARTS, bool SCALED> DEVICE void split_spike_weights(const WeightParts &of, int block, int shares) {
  const auto &[weights, steps, planes, scales] = of;
  constexpr int LARGEST = PARTS == 1 ? 14 : 10, MIN_EXPONENT = LARGEST + 2, MAX_EXPONENT = 254;
  const int share = block % shares;
  const int lane = lane_index(), warp = thread_index() / LANES, warps = block_size() / LANES, output = block / shares * LANES + lane;
  float up = 1;
  if (SCALED) {
    float *largest = reinterpret_cast<float *>(shared_memory());
    float mine = 0;
    UNROLL(8)
    for (int k = warp; k < weights.depths; k += warps)
      mine = fmaxf(mine, fabsf(weights.at(k, output)));
    largest[warp * LANES + lane] = mine;
    sync_block();
    for (int other = 0; other < warps; ++other)
      mine = fmaxf(mine, largest[other * LANES + lane]);
    const int exponent = most(MIN_EXPONENT, least(MAX_EXPONENT, static_cast<int>(bits_of(mine) >> 23)));
    up = number_of(static_cast<std::uint32_t>(254 + LARGEST - exponent) << 23);
    if (share == 0 && warp == 0)
      scales[output] = number_of(static_cast<std::uint32_t>(exponent - LARGEST - 1) << 23);
  } else if (share == 0 && warp == 0) {
    scales[output] = SPIKE_SCALE;
  }
  for (int item = share * warps + warp; item < steps * 4; item += shares * warps) {
    const int step = item / 4, matrix = item % 4;
    float found[8];
    UNROLL(8)
    for (int i = 0; i < 8; ++i)
      found[i] = weights.at(step * STEP_DEPTH + spike_depth(matrix * 4 + i / 2, i % 2), output);
    PreparedRow<PARTS> row;
    UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      if (PARTS == 1) {
        row.parts[i][0] = Float16::pair(Float16::bounded(found[2 * i] * up), Float16::bounded(found[2 * i + 1] * up));
        continue;
      }
      const float low = found[2 * i] * up, high = found[2 * i + 1] * up, large_low = rintf(low), large_high = rintf(high);
      row.parts[i][0] = Float16::pair(large_low, large_high);
      row.parts[i][PARTS - 1] = Float16::pair((low - large_low) * (1 / SMALL_PART), (high - large_high) * (1 / SMALL_PART));
    }
    row.store(planes, steps, output, step, matrix);
  }
}

/// Splits weights into bfloat16 parts for products with numbers; `ROUNDED`: after rounding them to float16. All blocks share them.
template <int PARTS, bool ROUNDED> DEVICE void split_number_weights(const WeightParts &of, int block, int blocks) {
  const auto &[weights, steps, planes, scales] = of;
  const int lane = lane_index(), warps = block_size() / LANES, strips = whole_parts(weights.outputs, STRIP);
  for (int item = block * warps + thread_index() / LANES; item < strips * (STRIP / LANES) * steps * 4; item += blocks * warps) {
    const int matrix = item % 4, step = item / 4 % steps, output = item / 4 / steps * LANES + lane;
    PreparedRow<PARTS> row;
    UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      float found[2];
      UNROLL(2)
      for (int e = 0; e < 2; ++e) {
        found[e] = weights.at(step * STEP_DEPTH + number_depth(matrix * 4 + i, e), output);
        if (ROUNDED)
          found[e] = Float16::number(Float16::of(Float16::bounded(found[e])));
      }
      split_pair<BFloat16>(found[0], found[1], row.parts[i]);
    }
    row.store(planes, steps, output, step, matrix);
  }
}

/// How a weight is split.
enum class Split { SPIKES, SPIKES_ROUNDED, SPIKES_TF32, NUMBERS, NUMBERS_ROUNDED, NUMBERS_THREE, HALF_WEIGHTS };

/// A weight that some blocks of a launch split: blocks up to `end`, in groups of `shares` for spikes.
struct WeightTask {
  WeightParts parts;
  Split split;
  int shares, end;
};

/// Maximum number of weights per launch, which are its argument.
constexpr int MAX_TASKS = 32;
struct WeightTasks {
  WeightTask tasks[MAX_TASKS];
};

KERNEL void split_weights(WHOLE_GRID WeightTasks of) {
  int at = 0, first = 0;
  while (of.tasks[at].end <= block_index())
    first = of.tasks[at++].end;
  const WeightTask &task = of.tasks[at];
  const int block = block_index() - first, blocks = task.end - first;
  switch (task.split) {
  case Split::SPIKES:
    return split_spike_weights<2, true>(task.parts, block, task.shares);
  case Split::SPIKES_ROUNDED:
    return split_spike_weights<1, false>(task.parts, block, task.shares);
  case Split::SPIKES_TF32:
    return split_spike_weights<1, true>(task.parts, block, task.shares);
  case Split::NUMBERS:
    return split_number_weights<2, false>(task.parts, block, blocks);
  case Split::NUMBERS_ROUNDED:
    return split_number_weights<1, false>(task.parts, block, blocks);
  case Split::NUMBERS_THREE:
    return split_number_weights<3, false>(task.parts, block, blocks);
  case Split::HALF_WEIGHTS:
    return split_number_weights<2, true>(task.parts, block, blocks);
  }
}

} // namespace snnc

#endif
