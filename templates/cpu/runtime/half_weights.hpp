// Float16 weights, stored as float32: they are rounded when they are set and after every update.
#ifndef SNNC_HALF_WEIGHTS_HPP
#define SNNC_HALF_WEIGHTS_HPP

#include "float16.hpp"
#include "half_updates.hpp"
#include "parameters.hpp"

#include <cstring>
#include <vector>

namespace snnc {

inline float nearest_half(float value) { return float_of(half_of(limited(value))); }

/// A part of the elements of a parameter, as passed to `change`.
using Changed = std::pair<std::size_t, std::size_t>;

inline void round_to_nearest(Parameter &weight, Changed part) {
  for (std::size_t i = part.first; i < part.second; ++i)
    weight.value[i] = nearest_half(weight.value[i]);
}

/// Adds the rounding errors before an update.
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

/// Rounds at random. Random numbers depend on the position of a weight in the model's array [outputs][inputs]; padding stays 0.
inline void round_at_random(Parameter &weight, Changed part, const Panels &panels, unsigned key, int update) {
  const unsigned of_update = scrambled(key ^ static_cast<unsigned>(update));
  for (std::size_t i = part.first; i < part.second; ++i) {
    const std::size_t first = i / (panels.width * panels.inputs) * panels.width, width = panels.width_at(first);
    const std::size_t within = i - first * panels.inputs, output = first + within % width, input = within / width;
    if (output < panels.outputs)
      weight.value[i] = rounded_at_random(weight.value[i], drawn(of_update, static_cast<unsigned>(output * panels.inputs + input)));
  }
}

/// Rounds the weights of connections that are not dense; the parameter contains their positions.
inline void round_at_random(Parameter &weight, Changed part, unsigned key, int update) {
  const unsigned of_update = scrambled(key ^ static_cast<unsigned>(update));
  for (std::size_t i = part.first; i < part.second; ++i)
    weight.value[i] =
        rounded_at_random(weight.value[i], drawn(of_update, weight.places.empty() ? static_cast<unsigned>(i) : weight.places[i]));
}

/// Returns the model position of each stored element, found by moving values whose bits are positions; padding has position 0.
inline std::vector<unsigned> places_of(const Parameter &weight) {
  static_assert(sizeof(unsigned) == sizeof(float), "the bits of a position are moved as a float");
  std::vector<unsigned> places(weight.numbers), model(weight.elements);
  for (std::size_t i = 0; i < model.size(); ++i)
    model[i] = static_cast<unsigned>(i);
  Array<float> own(weight.numbers), numbers(weight.elements);
  std::memcpy(numbers.data(), model.data(), model.size() * sizeof(float));
  weight.set(own, numbers.data());
  std::memcpy(places.data(), own.data(), places.size() * sizeof(float));
  return places;
}

} // namespace snnc

#endif
