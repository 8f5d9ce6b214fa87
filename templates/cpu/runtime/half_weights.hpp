// Weights whose values are float16 numbers: values that are set and every update are rounded.
#ifndef SNNC_HALF_WEIGHTS_HPP
#define SNNC_HALF_WEIGHTS_HPP

#include "float16.hpp"
#include "half_updates.hpp"
#include "parameters.hpp"

namespace snnc {

inline float nearest_half(float value) { return float_of(half_of(limited(value))); }

/// A part of the numbers of a parameter, as `change` receives it.
using Changed = std::pair<std::size_t, std::size_t>;

inline void round_to_nearest(Parameter &weight, Changed part) {
  for (std::size_t i = part.first; i < part.second; ++i)
    weight.value[i] = nearest_half(weight.value[i]);
}

/// Before an update: adds the rounding errors.
inline void make_exact(Parameter &weight, Changed part) {
  for (std::size_t i = part.first; i < part.second; ++i)
    weight.value[i] += weight.remainder[i];
}

inline void round_keeping_remainder(Parameter &weight, Changed part) {
  for (std::size_t i = part.first; i < part.second; ++i) {
    const float exact = weight.value[i];
    weight.value[i] = nearest_half(exact);
    weight.remainder[i] = exact - weight.value[i];
  }
}

/// A random number depends on the position of the weight in the model's array [outputs][inputs]; padding stays 0.
inline void round_at_random(Parameter &weight, Changed part, const Panels &panels, unsigned key, int update) {
  const unsigned of_update = scrambled(key ^ static_cast<unsigned>(update));
  for (std::size_t i = part.first; i < part.second; ++i) {
    const std::size_t first = i / (panels.width * panels.inputs) * panels.width, width = panels.width_at(first);
    const std::size_t within = i - first * panels.inputs, output = first + within % width, input = within / width;
    if (output < panels.outputs)
      weight.value[i] = rounded_at_random(weight.value[i], drawn(of_update, static_cast<unsigned>(output * panels.inputs + input)));
  }
}

} // namespace snnc

#endif
