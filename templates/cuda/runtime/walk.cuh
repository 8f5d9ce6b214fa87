// A population without recurrence: each thread runs a neuron of a sample through all steps of a segment, with its states in registers.
#ifndef SNNC_WALK_CUH
#define SNNC_WALK_CUH

#include "sources.hpp"
#include "teams.hpp"

namespace snnc {

/// Number of steps whose values are loaded ahead.
constexpr int READ_AHEAD = 8;

/// Calls act(sample, first neuron) for this warp's shares of a population.
template <int SIZE, class Act> DEVICE void for_each_warp(int batch, const Act &act) {
  constexpr int CHUNKS = (SIZE + LANES - 1) / LANES;
  const int warps = grid_size() * (block_size() / LANES);
  for (int at = block_index() * (block_size() / LANES) + thread_index() / LANES; at < batch * CHUNKS; at += warps)
    act(at / CHUNKS, at % CHUNKS * LANES);
}

/// Runs one neuron through all steps; `t(i)` is the i-th step; `store(t, outputs)` is called by all lanes.
template <class Neuron, class Net, class Time, class Store>
DEVICE void walk(const Net &net, int steps, int b, int neuron, const Time &t, const Store &store) {
  const bool live = neuron < Neuron::SIZE;
  const int n = live ? neuron : Neuron::SIZE - 1;
  constexpr float none[Neuron::PORTS] = {};
  Neuron state;
  typename Neuron::Given given[READ_AHEAD];
  if (live) {
    state.begin(net, b, n);
    UNROLL(8)
    for (int i = 0; i < READ_AHEAD; ++i)
      if (i < steps)
        given[i] = state.read(net, t(i), b, n);
  }
  for (int first = 0; first < steps; first += READ_AHEAD) {
    UNROLL(8)
    for (int i = 0; i < READ_AHEAD; ++i) {
      const int now = first + i, ahead = now + READ_AHEAD;
      if (now >= steps)
        break;
      float outputs[Neuron::OUTPUTS] = {};
      if (live) {
        const typename Neuron::Given own = given[i];
        if (ahead < steps)
          given[i] = state.read(net, t(ahead), b, n);
        state.step(net, t(now), b, n, own, none, outputs);
      }
      store(t(now), outputs);
    }
  }
  if (live)
    state.end(net, b, n);
}

template <class Neuron, class Net> KERNEL void walk_forward(WHOLE_GRID Net net, WHOLE_GRID Run run) {
  const int lane = lane_index();
  for_each_warp<Neuron::SIZE>(run.batch, [&](int b, int first) {
    Along<std::uint32_t> words[Neuron::OUTPUTS];
    UNROLL(4)
    for (int output = 0; output < Neuron::OUTPUTS; ++output)
      words[output] = Neuron::words(net, output, b, first / LANES);
    walk<Neuron>(
        net, run.steps, b, first + lane, [](int i) { return i; },
        [&](int t, const float (&outputs)[Neuron::OUTPUTS]) {
          UNROLL(4)
          for (int output = 0; output < Neuron::OUTPUTS; ++output)
            if (Neuron::spikes(output)) {
              const std::uint32_t bits = ballot(outputs[output] != 0.0f);
              if (lane == 0)
                words[output].at(t) = bits;
            }
        });
  });
}

template <class Neuron, class Net> KERNEL void walk_backward(WHOLE_GRID Net net, WHOLE_GRID Run run) {
  const int lane = lane_index(), last = run.steps - 1;
  for_each_warp<Neuron::SIZE>(run.batch, [&](int b, int first) {
    walk<Neuron>(net, run.steps, b, first + lane, [=](int i) { return last - i; }, [](int, const float (&)[Neuron::OUTPUTS]) {});
  });
}

} // namespace snnc

#endif
