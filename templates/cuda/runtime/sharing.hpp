// How samples and neurons are shared out to blocks: chosen by a rough prediction of what a step costs, never measured here.
#ifndef SNNC_SHARING_HPP
#define SNNC_SHARING_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace snnc {

/// What a step of one sample takes: barriers, chunks of neurons that warps share; weights behind lists and behind rows of numbers forward,
/// weights of the backward products; rows of both kinds of products that a warp goes through for a chunk, at most.
struct Work {
  double levels, chunks, listed, valued, back, valued_rows, back_rows;
};

/// The same of one way; `near`: a block has room for its part of all of these weights in its shared memory.
struct Way {
  double listed, dense, rows;
  bool near;
};

struct Sharing {
  int team_samples = 1, team_blocks = 1, teams = 1, forward_tile = 1, backward_tile = 1;
  /// Whether the device makes a cluster of each team, and has room for all of them at once.
  bool clusters = false;
  /// Bytes of weights in a block's shared memory, forward and back.
  std::size_t near_bytes = 0;
  int blocks() const { return teams * team_blocks; }
  std::string text() const {
    return ", \"teams\": " + std::to_string(teams) + ", \"team_blocks\": " + std::to_string(team_blocks) +
           ", \"team_samples\": " + std::to_string(team_samples) + ", \"tile\": " + std::to_string(backward_tile) +
           ", \"clusters\": " + (clusters ? "true" : "false") + ", \"near_bytes\": " + std::to_string(near_bytes);
  }
};

/// Predicted cycles of a step, forward or back, by what an H100 takes (docs/explanation/gpu-bounds.md): within a factor of 1.5 of both passes
/// of a network of one and of two recurrent layers there.
inline double predicted_cycles(const Sharing &given, int tile, const Work &work, const Way &way) {
  // Cycles of a barrier of a block and of a team, the same for any width (a wider team of the same time is not worth its blocks); bytes out of L2 and out of
  // shared memory, and multiplications, that a multiprocessor takes a cycle; usual activity.
  constexpr double BLOCK_BARRIER = 103, TEAM_BARRIER = 2400, ARRIVAL = 1, FAR_BYTES = 24, NEAR_BYTES = 90, PRODUCTS = 85, ACTIVITY = 0.05;
  // Cycles of a row for a warp, of a lone sample and of a tile; of lists and equations of 32 neurons and a sample, forward.
  constexpr double FAR_ROW = 57, FAR_ROW_OF_TILE = 82, NEAR_ROW = 23, NEAR_ROW_OF_TILE = 48, LISTS = 7000, WARPS = 16;
  const double samples = given.team_samples, reads = (given.team_samples + tile - 1) / tile;
  const double bytes = 4 * (way.listed * ACTIVITY * samples + way.dense * reads) / given.team_blocks;
  const double products = way.dense * reads * tile / given.team_blocks;
  const double row = way.near ? (tile == 1 ? NEAR_ROW : NEAR_ROW_OF_TILE) : (tile == 1 ? FAR_ROW : FAR_ROW_OF_TILE);
  const double items = std::ceil(work.chunks * reads / (given.team_blocks * WARPS));
  const double lists = way.listed > 0 ? items * std::min<double>(tile, samples) * LISTS : 0;
  return work.levels * (given.team_blocks == 1 ? BLOCK_BARRIER : TEAM_BARRIER + ARRIVAL * given.team_blocks) + lists +
         std::max({bytes / (way.near ? NEAR_BYTES : FAR_BYTES), products / PRODUCTS, items * way.rows * row});
}

/// Blocks of a team and the tiles for `batch` samples on `limit` blocks; `blocks` and `tile` are what was asked for, 0 for a choice;
/// near(blocks, back) tells whether all weights of a way come near in teams of so many blocks.
template <class Fits> Sharing share_out(const Work &work, int batch, int limit, int blocks, int tile, bool training, const Fits &near) {
  constexpr int WIDE = 8;
  Sharing best;
  double least = -1;
  for (int each = 1; each <= limit; each *= 2) {
    Sharing made;
    made.team_blocks = blocks > 0 ? std::min(blocks, limit) : each;
    const int teams = std::max(1, std::min(limit / made.team_blocks, batch));
    made.team_samples = (batch + teams - 1) / teams;
    made.teams = (batch + made.team_samples - 1) / made.team_samples;
    double whole = 0;
    for (int pass = 0; pass < (training ? 2 : 1); ++pass) {
      const Way way = pass == 0 ? Way{work.listed, work.valued, work.valued_rows, near(made.team_blocks, false)}
                                : Way{0, work.back, work.back_rows, near(made.team_blocks, true)};
      const double narrow = predicted_cycles(made, 1, work, way), wide = predicted_cycles(made, WIDE, work, way);
      const int chosen = tile > 0 ? (tile > 1 ? WIDE : 1) : wide < narrow ? WIDE : 1;
      (pass == 0 ? made.forward_tile : made.backward_tile) = chosen;
      whole += chosen == 1 ? narrow : wide;
    }
    if (least < 0 || whole < least) {
      least = whole;
      best = made;
    }
  }
  return best;
}

} // namespace snnc

#endif
