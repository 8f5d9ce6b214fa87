// A learned parameter on the device: its values, the slices of its gradient, and the moments of the optimiser.
#ifndef SNNC_LEARNED_HPP
#define SNNC_LEARNED_HPP

#include "gradients.hpp"
#include "half.hpp"

namespace snnc {

struct Learned {
  float *value, *moment1, *moment2;
  Slices gradient;
  float *moment3 = nullptr;
  /// Rounding errors of a float16 weight.
  float *remainder = nullptr;

  /// Returns the gradient of an element: the sum of its slices, in order.
  DEVICE float gradient_of(int i) const {
    float sum = 0;
    for (int slice = 0; slice < gradient.count; ++slice)
      sum += gradient.at(slice, static_cast<std::size_t>(i));
    return sum;
  }
};

/// Rounds to the nearest finite float16 value.
DEVICE float nearest_half(float value) { return Float16::number(Float16::of(Float16::bounded(value))); }

/// Calls act(index) for every element of an array; all threads of the grid share the elements.
template <class Act> DEVICE void for_each_number(int numbers, const Act &act) {
  for (int i = block_index() * block_size() + thread_index(); i < numbers; i += grid_size() * block_size())
    act(i);
}

/// For each input, whether it contains values other than spikes.
struct Flags {
  const int *data;
  int count;
  DEVICE bool raised() const {
    bool found = false;
    for (int i = 0; i < count; ++i)
      found = found || data[i] != 0;
    return found;
  }
};

/// Sets all values to NaN if a flag is raised.
DEVICE void spoil_flagged(const int *flags, int count, float *numbers, int size) {
  for_each_number(Flags{flags, count}.raised() ? size : 0, [=](int i) { numbers[i] = NAN; });
}

/// Writes a gradient in the model's order: that of a dense weight, [inputs][outputs], is transposed (`inputs` 0: not transposed).
/// `more`: adds to the destination.
DEVICE void gather(const Slices &gradient, int inputs, bool more, float *to) {
  const int outputs = inputs == 0 ? 1 : gradient.numbers / inputs;
  for_each_number(gradient.numbers, [=](int i) {
    const Learned of{nullptr, nullptr, nullptr, gradient};
    const float sum = of.gradient_of(inputs == 0 ? i : i % inputs * outputs + i / inputs);
    to[i] = more ? to[i] + sum : sum;
  });
}

/// Writes the copy [outputs][inputs] of weights [inputs][outputs], which the backward pass reads along the inputs.
DEVICE void turn_weights(const float *weights, int inputs, int outputs, float *copy) {
  for_each_number(inputs * outputs, [=](int i) { copy[i] = weights[i % inputs * outputs + i / inputs]; });
}

} // namespace snnc

#endif
