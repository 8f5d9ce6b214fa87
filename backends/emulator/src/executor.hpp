// Runs one compute set.
#pragma once

#include <cstdint>
#include <vector>

#include <poplar/Target.hpp>

#include "pool.hpp"
#include "superstep.hpp"

namespace poplar::core {

class Executor {
public:
  explicit Executor(const Target &target);
  /// Allocates the memory that `run` needs for this step.
  void reserve(const Superstep &step);
  /// Runs every vertex once, without allocating memory; returns the tile cycles of the busiest tile.
  double run(Superstep &step);
  unsigned threads() const { return pool_.threads(); }

private:
  struct Thread {
    AlignedBytes scratch;
    std::vector<std::uint64_t> workerCycles;
    /// Cycles assigned to each worker.
    std::vector<std::uint64_t> load;
    double busiest = 0, sum = 0, seconds = 0;
    /// Vertex types of the step whose cycles had to be estimated.
    std::vector<char> guessed;
    /// Check sums of inputs, if fields are guarded.
    std::vector<std::uint64_t> sums;
  };
  struct Job {
    Executor *executor;
    Superstep *step;
    std::uint32_t chunks;
  };

  void runGroups(Superstep &step, std::uint32_t begin, std::uint32_t end, Thread &thread);
  double runGroup(const Superstep &step, const TileGroup &group, Thread &thread);
  double runPlain(const Superstep &step, const TileGroup &group, Thread &thread);
  void enterTile(std::uint32_t tile);
  std::uint64_t cyclesOf(const VertexCall &call, std::uint64_t counted, Thread &thread) const;
  double busiestWorker(Thread &thread) const;
  static void work(void *job, std::uint32_t chunk, unsigned thread);

  const unsigned workers_;
  const double supervisorCycles_;
  const std::uint64_t startCycles_;
  /// Compute sets that take longer (in seconds on one thread) are shared among threads.
  const double threshold_;
  /// Whether the workers of a MultiVertex are isolated from each other's results.
  const bool apart_;
  /// Whether fields are between guards.
  const bool guarded_;
  /// Random number states of each worker of each tile.
  std::vector<unsigned long long> randoms_;
  Pool pool_;
  std::vector<Thread> threads_;
};

} // namespace poplar::core
