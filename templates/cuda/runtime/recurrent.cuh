// Common parts of the recurrent cores: a population with a dense recurrence, run through all steps of a segment by blocks that keep its
// weights on chip.
#ifndef SNNC_RECURRENT_CUH
#define SNNC_RECURRENT_CUH

#include "clusters.hpp"
#include "half.hpp"
#include "limits.hpp"
#include "recurrent_plan.hpp"
#include "teams.hpp"

namespace snnc {

ANYWHERE constexpr int parts_of(int count, int part) { return (count + part - 1) / part; }
ANYWHERE constexpr int larger_of(int a, int b) { return a > b ? a : b; }

/// The forward pass: neurons receive spikes of earlier steps and send spikes. HALVES: number of 16-bit values into which a weight is split.
template <class NetOf, class LoopOf, int HALVES = 2> struct ForwardWay {
  using Net = NetOf;
  using Loop = LoopOf;
  using Neuron = typename Loop::Forward;
  using Half = Float16;
  static constexpr bool BACK = false;
  static constexpr int SIZE = Loop::SIZE, DELAY = Loop::DELAY, PARTS = HALVES, IN = Loop::PORT, OUT = Loop::OUTPUT;
  /// Returns the step of iteration `n` of the loop.
  DEVICE static int step(const Run &, int n) { return n; }
  DEVICE static float weight(const float *weights, int neuron, int input) {
    return weights[static_cast<std::size_t>(input) * SIZE + static_cast<std::size_t>(neuron)];
  }
};

/// The backward pass: neurons receive deltas of later steps and send deltas.
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
  /// Returns the delta of a step after the segment; 0 after the end of the sequence.
  DEVICE static float behind(const Net &net, const Run &run, int t, int b, int n) {
    return t < run.steps + run.after ? Loop::delta(net, t, b, n) : 0.0f;
  }
};

/// A clock that measures nothing.
struct NoClock {
  DEVICE void part(int) {}
  DEVICE void end() {}
};

/// Division of samples and neurons in a block: chunks of LANES neurons, SAMPLES samples. RECEIVERS: blocks to which a warp sends its words.
template <int BLOCKS_OF, int CHUNKS_OF, int SAMPLES_OF, int WARPS_OF, bool CLUSTERED = true> struct Units {
  static constexpr int BLOCKS = BLOCKS_OF, CHUNKS = CHUNKS_OF, SAMPLES = SAMPLES_OF, WARPS = WARPS_OF, RECEIVERS = CLUSTERED ? BLOCKS : 1;
  /// A unit is 32 neurons of one sample: units of the block, and units per warp.
  static constexpr int ALL = CHUNKS * SAMPLES, OF_WARP = parts_of(ALL, WARPS);
  DEVICE static int index(int warp, int i) { return warp * OF_WARP + i; }
  DEVICE static bool exists(int unit) { return ALL % WARPS == 0 || unit < ALL; }
  DEVICE static int sample(int unit) { return unit / CHUNKS; }
  DEVICE static int chunk(int unit) { return unit % CHUNKS; }
};

} // namespace snnc

#endif
