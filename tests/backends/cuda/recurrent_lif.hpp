// A population of leaky neurons with a dense recurrence, as network_neurons.cuh prints it, for checks of the recurrent cores.
#ifndef SNNC_RECURRENT_LIF_HPP
#define SNNC_RECURRENT_LIF_HPP

#include "teams.hpp"

namespace lif {

using namespace snnc;

/// Pointers to whole sequences; `first` is the step at which the segment begins, `spikes` and `v` have so many rows in front.
struct Net {
  const float *weights, *currents, *adjoints;
  float *v, *deltas, *state, *carry;
  std::uint32_t *spikes;
  int batch, first, lead;
};

DEVICE float slope(float v) {
  const float u = 1.0f + 25.0f * fabsf(v - 1.0f);
  return 1.0f / (u * u);
}

DEVICE std::size_t row(const Net &net, int t, int b) { return static_cast<std::size_t>(net.first + t) * static_cast<std::size_t>(net.batch) + static_cast<std::size_t>(b); }
DEVICE std::size_t past(const Net &net, int t, int b) {
  return static_cast<std::size_t>(net.lead + net.first + t) * static_cast<std::size_t>(net.batch) + static_cast<std::size_t>(b);
}

template <int N> struct Forward {
  static constexpr int SIZE = N, PORTS = 1, OUTPUTS = 1;
  struct Given {
    float c0;
  };
  float v;
  DEVICE void begin(const Net &net, int b, int n) { v = net.state[static_cast<std::size_t>(b) * N + static_cast<std::size_t>(n)]; }
  DEVICE static Given read(const Net &net, int t, int b, int n) { return {net.currents[row(net, t, b) * N + static_cast<std::size_t>(n)]}; }
  DEVICE void step(const Net &net, int t, int b, int n, const Given &given, const float (&more)[1], float (&outputs)[1]) {
    v = 0.9f * v * (v > 1.0f ? 0.0f : 1.0f) + (given.c0 + more[0]);
    net.v[row(net, t, b) * N + static_cast<std::size_t>(n)] = v;
    outputs[0] = v > 1.0f ? 1.0f : 0.0f;
  }
  DEVICE static void store_word(const Net &net, int, int t, int b, int word, std::uint32_t bits) { net.spikes[past(net, t, b) * ((N + 31) / 32) + static_cast<std::size_t>(word)] = bits; }
  DEVICE void end(const Net &net, int b, int n) { net.state[static_cast<std::size_t>(b) * N + static_cast<std::size_t>(n)] = v; }
};

template <int N> struct Back {
  static constexpr int SIZE = N, PORTS = 1, OUTPUTS = 1;
  struct Given {
    float a, v;
  };
  float carry;
  DEVICE void begin(const Net &net, int b, int n) { carry = net.carry[static_cast<std::size_t>(b) * N + static_cast<std::size_t>(n)]; }
  DEVICE static Given read(const Net &net, int t, int b, int n) {
    const std::size_t at = row(net, t, b) * N + static_cast<std::size_t>(n);
    return {net.adjoints[at], net.v[at]};
  }
  DEVICE void step(const Net &net, int t, int b, int n, const Given &given, const float (&more)[1], float (&outputs)[1]) {
    carry = (given.a + more[0]) * slope(given.v) + (given.v > 1.0f ? 0.0f : 0.9f * carry);
    net.deltas[row(net, t, b) * N + static_cast<std::size_t>(n)] = carry;
    outputs[0] = carry;
  }
  DEVICE void end(const Net &net, int b, int n) { net.carry[static_cast<std::size_t>(b) * N + static_cast<std::size_t>(n)] = carry; }
};

template <int N, int D> struct Loop {
  using Forward = lif::Forward<N>;
  using Back = lif::Back<N>;
  static constexpr int SIZE = N, PORT = 0, OUTPUT = 0, DELAY = D;
  static constexpr bool LIMITED = false, MASKED = false;
  DEVICE static const float *weights(const Net &net) { return net.weights; }
  DEVICE static std::uint32_t word(const Net &net, int t, int b, int word) { return net.spikes[past(net, t, b) * ((N + 31) / 32) + static_cast<std::size_t>(word)]; }
  DEVICE static float delta(const Net &net, int t, int b, int n) { return net.deltas[row(net, t, b) * N + static_cast<std::size_t>(n)]; }
};

} // namespace lif

#endif
