// Division of samples and neurons among blocks, chosen by a rough prediction of the cost of a step, without measuring.
#ifndef SNNC_SHARE_OUT_HPP
#define SNNC_SHARE_OUT_HPP

#include "sharing.hpp"

#include <algorithm>
#include <cmath>

namespace snnc {

/// The work of one pass; `near`: a block can keep its part of all these weights in shared memory.
struct Way {
  double listed, dense, rows;
  bool near;
};

/// Predicted cycles of a forward or backward step, from rates of an H100 (docs/explanation/gpu-bounds.md): within a factor of 1.5 for both
/// passes of networks with one and two recurrent layers.
inline double predicted_cycles(const Sharing &given, int tile, const Work &work, const Way &way) {
  // Cycles of a block barrier and of a team barrier (equal for all widths; a wider team with the same time is not worth its blocks); bytes from L2
  // and from shared memory, and multiplications, per cycle and multiprocessor; usual activity.
  constexpr double BLOCK_BARRIER = 103, TEAM_BARRIER = 2400, ARRIVAL = 1, FAR_BYTES = 24, NEAR_BYTES = 90, PRODUCTS = 85, ACTIVITY = 0.05;
  // Cycles of a warp per row, for one sample and for a tile; cycles of lists and equations per 32 neurons and sample, forward.
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

/// Returns the teams and tiles for `batch` samples on at most `limit` blocks; `blocks` and `tile` are requested values, 0 for a choice.
/// near(blocks, back) returns whether all weights of a pass fit in shared memory with teams of `blocks` blocks.
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
