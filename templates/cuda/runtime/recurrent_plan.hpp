// The compiled shapes of a recurrent core, as the host sees them.
#ifndef SNNC_RECURRENT_PLAN_HPP
#define SNNC_RECURRENT_PLAN_HPP

#include "teams.hpp"

namespace snnc {

/// How blocks that share neurons communicate. OLD_DEVICE: through memory, but only on devices without clusters.
enum class Link { CLUSTER, MEMORY, OLD_DEVICE };

/// A shape of a recurrent core, as the prediction sees it: per block and step, `products` (of mma fragments or of float32 values), 4-byte
/// words that pass through shared memory, bytes from other blocks, and units (32 neurons of a sample) per warp; and the number of weights
/// of a block.
struct RecurrentPlan {
  bool tensor_cores, back, over_memory;
  int blocks, samples, warps;
  double products, words, exchanged;
  int units;
  double weights;
  std::size_t shared;
};

/// A shape that is compiled for a population: its kernel, null if the program has none, and what the choice among shapes needs.
template <class Net> struct CoreShape {
  void (*kernel)(WHOLE_GRID Net, WHOLE_GRID Run) = nullptr;
  RecurrentPlan plan{};
  Link link = Link::CLUSTER;
  /// Words of memory per team, if its blocks communicate through memory.
  int words = 0;
};

/// Words between the counters of teams, which are thus in different cache lines.
constexpr int COUNTER_WORDS = 32;

/// The shapes of a population in one pass.
template <class Net> struct CoreShapes {
  const CoreShape<Net> *first;
  int count;
};

} // namespace snnc

#endif
