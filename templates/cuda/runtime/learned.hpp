// A learned parameter on the device: its numbers, the slices of its gradient, what the optimiser keeps.
#ifndef SNNC_LEARNED_HPP
#define SNNC_LEARNED_HPP

#include "gradients.hpp"
#include "half.hpp"

namespace snnc {

struct Learned {
  float *value, *moment1, *moment2;
  Slices gradient;
  float *moment3 = nullptr;
  /// What rounding lost of a weight that has float16 values.
  float *remainder = nullptr;

  /// The gradient of a number: slices in their order.
  DEVICE float gradient_of(int i) const {
    float sum = 0;
    for (int slice = 0; slice < gradient.count; ++slice)
      sum += gradient.at(slice, static_cast<std::size_t>(i));
    return sum;
  }
};

/// The nearest float16 number; beyond them, the largest.
DEVICE float nearest_half(float value) { return Float16::number(Float16::of(Float16::bounded(value))); }

/// Calls act(number) for every number of an array, shared by all threads of the grid.
template <class Act> DEVICE void for_each_number(int numbers, const Act &act) {
  for (int i = block_index() * block_size() + thread_index(); i < numbers; i += grid_size() * block_size())
    act(i);
}

/// Of each input, whether it holds what is no spike.
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

/// Makes all numbers NaN where one of the flags is raised.
DEVICE void spoil_flagged(const int *flags, int count, float *numbers, int size) {
  for_each_number(Flags{flags, count}.raised() ? size : 0, [=](int i) { numbers[i] = NAN; });
}

/// The gradient in the order of the model: a dense weight's numbers [inputs][outputs] turned round (`inputs` of 0: as they lie).
/// `more`: it is added to what is there.
DEVICE void gather(const Slices &gradient, int inputs, bool more, float *to) {
  const int outputs = inputs == 0 ? 1 : gradient.numbers / inputs;
  for_each_number(gradient.numbers, [=](int i) {
    const Learned of{nullptr, nullptr, nullptr, gradient};
    const float sum = of.gradient_of(inputs == 0 ? i : i % inputs * outputs + i / inputs);
    to[i] = more ? to[i] + sum : sum;
  });
}

/// copy [outputs][inputs] of weights [inputs][outputs], which the backward pass reads along its inputs.
DEVICE void turn_weights(const float *weights, int inputs, int outputs, float *copy) {
  for_each_number(inputs * outputs, [=](int i) { copy[i] = weights[i % inputs * outputs + i / inputs]; });
}

} // namespace snnc

#endif
