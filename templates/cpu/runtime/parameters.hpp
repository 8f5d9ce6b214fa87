// Parameters, their gradients per thread, and the optimiser's moments.
#ifndef SNNC_PARAMETERS_HPP
#define SNNC_PARAMETERS_HPP

#include "arrays.hpp"

#include <functional>
#include <string>
#include <vector>

namespace snnc {

/// Number of elements that an optimiser updates at a time.
constexpr std::size_t CHANGED = 256;

/// The layout of a dense weight [outputs][inputs]: row-major by input, in panels of at most PANEL outputs.
struct Panels {
  std::size_t inputs, outputs, width;
  Panels(std::size_t n, std::size_t m) : inputs(n), outputs(m) {
    const std::size_t panels = (m + PANEL - 1) / PANEL;
    width = padded((m + panels - 1) / panels);
  }
  std::size_t columns() const { return padded(outputs); }
  std::size_t numbers() const { return inputs * columns(); }
  /// Returns the width of the panel that begins at column `first`.
  std::size_t width_at(std::size_t first) const { return columns() - first < width ? columns() - first : width; }
  /// Calls move(stored position, element of [outputs][inputs]) for all elements, in blocks of cache lines of both.
  template <class Move> void for_elements(const Move &move) const {
    for (std::size_t first = 0; first < outputs; first += width)
      for (std::size_t input = 0; input < inputs; input += LINE)
        for (std::size_t output = first; output < outputs && output < first + width; ++output)
          for (std::size_t i = input; i < inputs && i < input + LINE; ++i)
            move(first * inputs + i * width_at(first) + (output - first), output * inputs + i);
  }
};

/// Direction of a copy: from the model's order to the stored order, or back.
enum class Way { in, out };
using Order = std::function<void(float *own, float *model, Way way)>;

/// A parameter with `elements` elements in the model's order, stored as `numbers` elements including padding.
struct Parameter {
  std::string name;
  std::size_t elements;
  std::size_t numbers;
  /// Null: the stored order is that of the model.
  Order order;
  /// A population parameter: padded with copies of the last element, so that equations never divide by a padding of 0.
  bool neurons;
  Array<float> value, moment1, moment2;
  /// One per thread, or one for all; empty if the parameter is not learned.
  std::vector<Array<float>> gradients;
  /// Whether the first block of a backward pass overwrites the gradients; otherwise they are cleared and added to.
  bool written = false;
  /// Whether all threads share one gradient; each computes some of its rows.
  bool shared = false;
  Array<float> moment3;
  /// Rounding errors of weights with float16 values; empty if they are not stored.
  Array<float> remainder;
  /// Model position of each stored element, if random rounding needs it; empty: the stored order is that of the model.
  std::vector<unsigned> places;
  /// Rounds all elements after they were set; null: no rounding.
  void (*settled)(Parameter &) = nullptr;

  Parameter(const char *name, std::size_t elements, std::size_t numbers, Order order, bool neurons);
  /// Not inline, like the functions below, so that network.cpp need not compile them for each of its parameters.
  ~Parameter();

  /// Copies an array with the layout of this parameter from or to the model's order.
  void set(Array<float> &own, const float *model) const;
  void get(const Array<float> &own, float *model) const;
  /// Returns the gradients of elements first ... first + count - 1, summed over all threads in thread order; `room` has space for the sums.
  const float *gradient_sum(std::size_t first, std::size_t count, float *room) const;
  float *gradient(int worker);
  void fill_up();
};

Parameter plain(const char *name, std::size_t elements);
Parameter dense(const char *name, const Panels &panels);

/// Returns the order in which `of.for_elements` visits the elements.
template <class Of> Order order_of(const Of &of) {
  return [of](float *own, float *model, Way way) {
    if (way == Way::in)
      of.for_elements([&](std::size_t place, std::size_t element) { own[place] = model[element]; });
    else
      of.for_elements([&](std::size_t place, std::size_t element) { model[element] = own[place]; });
  };
}

} // namespace snnc

#endif
