// Weights that a block reads at every step, kept in its shared memory: the columns of its own neurons.
#ifndef SNNC_NEAR_HPP
#define SNNC_NEAR_HPP

#include "teams.hpp"

#include <numeric>
#include <vector>

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

/// A matrix that may be kept in shared memory: its neurons, and words per chunk of neurons.
struct NearMatrix {
  Near *place;
  int neurons, chunk_words;

  int chunks() const { return (neurons + LANES - 1) / LANES; }
  /// Number of chunks per block of a team, and their bytes.
  int own(int team_blocks) const { return chunks() / std::gcd(team_blocks, chunks()); }
  std::size_t bytes(int team_blocks) const {
    return static_cast<std::size_t>(own(team_blocks)) * static_cast<std::size_t>(chunk_words) * sizeof(std::uint32_t);
  }
};

/// Returns whether all matrices fit in `room` bytes of a block.
inline bool all_near(std::size_t room, int team_blocks, const std::vector<NearMatrix> &all) {
  std::size_t bytes = 0;
  for (const NearMatrix &one : all)
    bytes += one.bytes(team_blocks);
  return bytes <= room;
}

/// Allocates matrices in the shared memory of a team's blocks, from byte `begin` to at most `end`; returns the end of the last one.
inline std::size_t place_near(std::size_t begin, std::size_t end, int team_blocks, const std::vector<NearMatrix> &all) {
  for (const NearMatrix &one : all) {
    const int own = one.own(team_blocks);
    const std::size_t bytes = one.bytes(team_blocks);
    *one.place = begin + bytes <= end ? Near{static_cast<int>(begin / sizeof(std::uint32_t)), one.chunks() / own, own * LANES} : Near();
    begin += one.place->there() ? bytes : 0;
  }
  return begin;
}

} // namespace snnc

#endif
