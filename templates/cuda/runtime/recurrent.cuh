// A population with a dense recurrence of its own, run through all steps of a segment by blocks that keep its weights: what both cores
// share.
#ifndef SNNC_RECURRENT_CUH
#define SNNC_RECURRENT_CUH

#include "clusters.hpp"
#include "half.hpp"
#include "limits.hpp"
#include "teams.hpp"

namespace snnc {

ANYWHERE constexpr int parts_of(int count, int part) { return (count + part - 1) / part; }
ANYWHERE constexpr int larger_of(int a, int b) { return a > b ? a : b; }

/// Forward in time: neurons take spikes of the steps before, and give spikes. HALVES: 16-bit numbers that a weight is split into.
template <class NetOf, class LoopOf, int HALVES = 2> struct ForwardWay {
  using Net = NetOf;
  using Loop = LoopOf;
  using Neuron = typename Loop::Forward;
  using Half = Float16;
  static constexpr bool BACK = false;
  static constexpr int SIZE = Loop::SIZE, DELAY = Loop::DELAY, PARTS = HALVES, IN = Loop::PORT, OUT = Loop::OUTPUT;
  /// The step at which the loop's turn `n` is.
  DEVICE static int step(const Run &, int n) { return n; }
  DEVICE static float weight(const float *weights, int neuron, int input) {
    return weights[static_cast<std::size_t>(input) * SIZE + static_cast<std::size_t>(neuron)];
  }
};

/// Back in time: neurons take deltas of the steps after, and give deltas.
template <class NetOf, class LoopOf, int HALVES = 2> struct BackWay {
  using Net = NetOf;
  using Loop = LoopOf;
  using Neuron = typename Loop::Back;
  using Half = BFloat16;
  static constexpr bool BACK = true;
  static constexpr int SIZE = Loop::SIZE, DELAY = Loop::DELAY, PARTS = HALVES, IN = Loop::OUTPUT, OUT = Loop::PORT;
  DEVICE static int step(const Run &run, int n) { return run.steps - 1 - n; }
  DEVICE static float weight(const float *weights, int neuron, int input) {
    return weights[static_cast<std::size_t>(neuron) * SIZE + static_cast<std::size_t>(input)];
  }
  /// The delta of a step after the segment, 0 where the sequence has ended.
  DEVICE static float behind(const Net &net, const Run &run, int t, int b, int n) {
    return t < run.steps + run.after ? Loop::delta(net, t, b, n) : 0.0f;
  }
};

/// Takes no time.
struct NoClock {
  DEVICE void part(int) {}
  DEVICE void end() {}
};

/// How blocks that share neurons reach each other. OLD_DEVICE: over memory too, but only on devices that have no clusters.
enum class Link { CLUSTER, MEMORY, OLD_DEVICE };

/// How samples and neurons lie in a block: chunks of LANES neurons, SAMPLES samples. RECEIVERS: blocks that a warp sends its words to.
template <int BLOCKS_OF, int CHUNKS_OF, int SAMPLES_OF, int WARPS_OF, bool CLUSTERED = true> struct Units {
  static constexpr int BLOCKS = BLOCKS_OF, CHUNKS = CHUNKS_OF, SAMPLES = SAMPLES_OF, WARPS = WARPS_OF, RECEIVERS = CLUSTERED ? BLOCKS : 1;
  /// A warp has so many times 32 neurons of one sample.
  static constexpr int ALL = CHUNKS * SAMPLES, OF_WARP = parts_of(ALL, WARPS);
  DEVICE static int index(int warp, int i) { return warp * OF_WARP + i; }
  DEVICE static bool exists(int unit) { return ALL % WARPS == 0 || unit < ALL; }
  DEVICE static int sample(int unit) { return unit / CHUNKS; }
  DEVICE static int chunk(int unit) { return unit % CHUNKS; }
};

} // namespace snnc

#endif
