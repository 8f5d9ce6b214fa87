// Division of the work: teams of blocks process samples for a whole sequence; warps process the neurons of a few samples at a time.
#ifndef SNNC_TEAMS_HPP
#define SNNC_TEAMS_HPP

#include "device.hpp"

namespace snnc {

/// Number of bits that a warp lists at a time: one word per lane.
constexpr int LISTED = LANES * 32;
/// Maximum number of samples for which a weight is read once.
constexpr int MAX_TILE = 8;

/// The sizes of a segment of a sequence and its division; `after`: steps of the sequence after it.
struct Run {
  int steps, batch, after;
  /// Samples and blocks of a team, and a counter per team.
  int team_samples, team_blocks;
  unsigned *counters;
  /// Whether the blocks of a team are a cluster, which has a hardware barrier.
  bool clusters;
};

/// A warp's own part of the shared memory.
struct Warp {
  int lane;
  /// Its index among `count` warps that share work.
  int index, count;
  /// Space for LISTED ids, or for the factors of a product.
  std::uint16_t *ids;
  /// Sums of a tile: [port][sample][lane].
  float *sums;

  /// Space for the factors of a product, [row][sample], and for the row indices after them.
  DEVICE float *factors() const { return reinterpret_cast<float *>(ids); }
};

/// Bytes of a warp's part with `sums` sums per lane.
ANYWHERE constexpr std::size_t warp_bytes(int sums) {
  return LISTED * sizeof(std::uint16_t) + static_cast<std::size_t>(sums) * LANES * sizeof(float);
}

DEVICE Warp warp_of(int first_block, int blocks, int sums) {
  const int own = thread_index() / LANES, each = block_size() / LANES;
  char *room = shared_memory() + static_cast<std::size_t>(own) * warp_bytes(sums);
  return {lane_index(), (block_index() - first_block) + own * blocks, blocks * each, reinterpret_cast<std::uint16_t *>(room),
          reinterpret_cast<float *>(room + LISTED * sizeof(std::uint16_t))};
}

/// A team of blocks and its samples.
class Team {
public:
  DEVICE explicit Team(const Run &run)
      : blocks(run.team_blocks), number(block_index() / run.team_blocks), counter(run.counters + number),
        clustered(HAS_CLUSTERS && run.clusters) {
    first = number * run.team_samples;
    samples = most(0, least(run.team_samples, run.batch - first));
  }
  DEVICE int first_block() const { return number * blocks; }

  /// Waits for all threads of the team; their writes are visible after it.
  DEVICE void barrier() {
    if (clustered)
      return sync_cluster();
    sync_block();
    if (blocks == 1)
      return;
    wanted += static_cast<unsigned>(blocks);
    if (thread_index() == 0)
      meet(counter, wanted);
    sync_block();
  }

  int first, samples, blocks;

private:
  int number;
  unsigned *counter;
  bool clustered;
  unsigned wanted = 0;
};

/// LANES neurons of up to TILE samples.
template <int TILE> struct Item {
  int sample, samples, neuron, column;
  bool live;
  float *sums;
  int lane;

  /// The sum of a port for a sample of the tile and the neuron of this lane.
  DEVICE float &sum(int port, int s) const { return sums[(port * TILE + s) * LANES + lane]; }
};

/// The work of populations between two barriers: the time step of each, and the number of items of earlier populations.
class Turns {
public:
  DEVICE Turns(int whole, int now_at) : steps(whole), round(now_at) {}
  /// Returns whether a population with the given skew has a step in this round.
  DEVICE bool now(int skew) {
    at = round - skew;
    return at >= 0 && at < steps;
  }
  DEVICE int step() const { return at; }
  DEVICE int taken() const { return items; }
  DEVICE void take(int count) { items += count; }

private:
  int steps, round, at = 0, items = 0;
};

/// Iterates over a warp's items of a population of SIZE neurons; items are distributed to warps in turn, after `taken` items of others.
template <int TILE, int SIZE> class Items {
public:
  static constexpr int CHUNKS = (SIZE + LANES - 1) / LANES;
  DEVICE static int all(const Team &team) { return whole_parts(team.samples, TILE) * CHUNKS; }
  DEVICE Items(const Team &of, const Warp &by, int taken) : team(of), warp(by), at(by.index - taken % by.count), end(all(of)) {
    at += at < 0 ? by.count : 0;
  }
  DEVICE bool more() const { return at < end; }
  DEVICE void next() { at += warp.count; }
  DEVICE Item<TILE> item() const {
    const int tile = at / CHUNKS * TILE, neuron = at % CHUNKS * LANES + warp.lane;
    return {team.first + tile, least(TILE, team.samples - tile), neuron, least(neuron, SIZE - 1), neuron < SIZE, warp.sums, warp.lane};
  }

private:
  const Team &team;
  const Warp &warp;
  int at, end;
};

/// Iterates over a warp's items of a population at all steps and samples of a segment, which are independent.
template <int TILE, int SIZE> class AllSteps {
public:
  static constexpr int CHUNKS = (SIZE + LANES - 1) / LANES;
  DEVICE AllSteps(const Run &of, const Warp &by) : run(of), warp(by), tiles(whole_parts(of.batch, TILE)), at(by.index) {}
  DEVICE bool more() const { return at < static_cast<long long>(run.steps) * tiles * CHUNKS; }
  DEVICE void next() { at += warp.count; }
  DEVICE int step() const { return static_cast<int>(at / CHUNKS / tiles); }
  DEVICE Item<TILE> item() const {
    const int sample = static_cast<int>(at / CHUNKS % tiles) * TILE, neuron = static_cast<int>(at % CHUNKS) * LANES + warp.lane;
    return {sample, least(TILE, run.batch - sample), neuron, least(neuron, SIZE - 1), neuron < SIZE, warp.sums, warp.lane};
  }

private:
  const Run &run;
  const Warp &warp;
  int tiles;
  long long at;
};

} // namespace snnc

#endif
