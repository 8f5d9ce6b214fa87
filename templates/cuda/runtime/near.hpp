// Weights that a block reads in every step, kept in its shared memory: the columns of its own neurons.
#ifndef SNNC_NEAR_HPP
#define SNNC_NEAR_HPP

#include "teams.hpp"

#include <numeric>
#include <vector>

namespace snnc {

/// Where a block's part of a matrix lies, counted in words; of chunks of LANES neurons it has every `step`-th one. `width`: of all of its chunks.
struct Near {
  int offset = -1, step = 1, width = 0;
  ANYWHERE bool there() const { return offset >= 0; }
};

/// The first of the chunks that a block's warps take where others have taken `taken` items before this population's.
DEVICE int first_chunk(const Near &near, const Team &team, int taken) {
  const int behind = (block_index() - team.first_block() - taken) % near.step;
  return behind < 0 ? behind + near.step : behind;
}

/// A matrix as a warp reads it, and the column of this lane.
struct Columns {
  const float *data;
  int stride, column;
};

/// The columns of a warp's neurons, near or in the device's memory.
template <int TILE> DEVICE Columns columns_of(const Near &near, const float *matrix, int stride, const Item<TILE> &item) {
  if (!near.there())
    return {matrix, stride, item.column};
  return {reinterpret_cast<const float *>(shared_memory()) + near.offset, near.width, item.neuron / LANES / near.step * LANES + item.lane};
}

/// Copies the columns of a matrix of SIZE columns that the block's warps will read.
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

/// A matrix that may come near: its neurons, and words of each chunk of them.
struct NearMatrix {
  Near *place;
  int neurons, chunk_words;

  int chunks() const { return (neurons + LANES - 1) / LANES; }
  /// Chunks of each block of a team, and bytes of them.
  int own(int team_blocks) const { return chunks() / std::gcd(team_blocks, chunks()); }
  std::size_t bytes(int team_blocks) const {
    return static_cast<std::size_t>(own(team_blocks)) * static_cast<std::size_t>(chunk_words) * sizeof(std::uint32_t);
  }
};

/// Whether all of them find room in so many bytes of a block.
inline bool all_near(std::size_t room, int team_blocks, const std::vector<NearMatrix> &all) {
  std::size_t bytes = 0;
  for (const NearMatrix &one : all)
    bytes += one.bytes(team_blocks);
  return bytes <= room;
}

/// Gives matrices room in the shared memory of a team's blocks, behind `begin` bytes and up to `end`; returns where they end.
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
