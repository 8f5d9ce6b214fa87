// Weights that a block reads at every step, kept in its shared memory: the columns of its own neurons.
#ifndef SNNC_NEAR_HPP
#define SNNC_NEAR_HPP

#include "teams.hpp"

namespace snnc {

/// Location of a block's part of a matrix in shared memory, in words: every `step`-th chunk of LANES neurons. `width`: that of all its chunks.
struct Near {
  int offset = -1, step = 1, width = 0;
  ANYWHERE bool there() const { return offset >= 0; }
};

/// Returns the first chunk of a block's warps if `taken` items of other populations precede this one.
DEVICE int first_chunk(const Near &near, const Team &team, int taken) {
  const int behind = (block_index() - team.first_block() - taken) % near.step;
  return behind < 0 ? behind + near.step : behind;
}

/// A matrix and the column that this lane reads.
struct Columns {
  const float *data;
  int stride, column;
};

/// Returns the columns of a warp's neurons, in shared or global memory.
template <int TILE> DEVICE Columns columns_of(const Near &near, const float *matrix, int stride, const Item<TILE> &item) {
  if (!near.there())
    return {matrix, stride, item.column};
  return {reinterpret_cast<const float *>(shared_memory()) + near.offset, near.width, item.neuron / LANES / near.step * LANES + item.lane};
}

/// Copies the columns that the block's warps read, of a matrix with SIZE columns, to shared memory.
template <int SIZE> DEVICE void fetch(const Near &near, const float *matrix, int rows, const Team &team, int taken) {
  if (!near.there())
    return;
  float *to = reinterpret_cast<float *>(shared_memory()) + near.offset;
  const int first = first_chunk(near, team, taken);
  for (int i = thread_index(); i < rows * near.width; i += block_size()) {
    const int column = i % near.width, neuron = (first + column / LANES * near.step) * LANES + column % LANES;
    to[i] = matrix[static_cast<std::size_t>(i / near.width) * SIZE + static_cast<std::size_t>(least(neuron, SIZE - 1))];
  }
}

} // namespace snnc

#endif
