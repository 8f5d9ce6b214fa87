// Dense connections: rows of weights of the neurons that fired, gathered weight gradients, products for what is dense.
#ifndef SNNC_DENSE_HPP
#define SNNC_DENSE_HPP

#include "parameters.hpp"
#include "products.hpp"

#include <initializer_list>

namespace snnc {

class Dense {
public:
  Dense(std::size_t inputs, std::size_t outputs) : panels(inputs, outputs) {}

  /// Adds what arrives at steps first ... last - 1, `delay` steps after the source sent it, to the rows of `target`.
  void forward(const Worker &w, const Source &source, int delay, int first, int last, const Parameter &weight, Rows &target,
               Scratch &scratch) const;

  /// Adds the gradient of the weight over steps first ... last - 1, whose deltas are kept; `fresh`: to zeros.
  void weight_gradient(const Worker &w, const Source &source, int delay, const Rows &delta, int first, int last, float *gradient,
                       bool fresh, Scratch &scratch) const {
    gradient_of({&w, 1, 0, panels.inputs}, source, delay, delta, first, last, gradient, fresh, scratch);
  }
  /// The same of all workers' samples, in their order: the rows of part `part` of `parts` even ones.
  void shared_gradient(const std::vector<Worker> &workers, int part, int parts, const Source &source, int delay, const Rows &delta,
                       int first, int last, float *gradient, bool fresh, Scratch &scratch) const;

  /// The weight is read in bfloat16, from the copies that `round` and `pack` make.
  void keep_rounded();

  /// Makes ready for `input_gradient`; `copied`: with room for the copy that `pack` makes.
  void keep_packed(bool copied);

  /// Copies the weight for `forward`, in bfloat16; the workers share the work.
  void round(const Parameter &weight, int worker, int workers);

  /// Copies the weight for `input_gradient`; the workers share the work.
  void pack(const Parameter &weight, int worker, int workers);

  /// Adds delta[t] W to the adjoint of the source at step t - delay, for t = first ... last - 1. A worker's lone sample reads the weight
  /// itself, not the copy, and so do all where there is none; with or without one, sums are the same to the bit.
  void input_gradient(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                      Scratch &scratch) const;

  /// As `input_gradient`, of those neurons only that `near` lists at step t - delay: the others take none.
  void near_gradient(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                     const Source &near, Scratch &scratch) const;

  const Panels panels;

private:
  Array<float> packed;
  /// All source neurons, ascending and then descending.
  std::vector<std::uint32_t> all;
  /// In bfloat16: rows of weights, in chunks, and the packed copy, in pairs of outputs.
  Array<BFloat16> rounded_rows;
  Array<std::uint32_t> packed_pairs;

  void gradient_of(const Part &part, const Source &source, int delay, const Rows &delta, int first, int last, float *gradient, bool fresh,
                   Scratch &scratch) const;
  std::size_t pairs() const { return (panels.outputs + 1) / 2; }
  /// Calls work(rows of weights, distance of one to the next) for the panel that begins at column `first`.
  template <class Work> void with_rows(const Parameter &weight, std::size_t first, const Work &work) const {
    const std::size_t width = panels.width_at(first);
    if (rounded_rows.size() == 0)
      work(weight.value.data() + first * panels.inputs, width);
    else
      work(rounded_rows.data() + first / panels.width * panels.inputs * chunked(panels.width), chunked(width));
  }
  /// As `forward`, for weights that no cache holds: each is read once, in order, and added where its source neuron fired.
  void stream(const Worker &w, const Source &source, int t, const Parameter &weight, Rows &target, int now, Scratch &scratch) const;
  /// As `input_gradient`, of the weight as it lies: samples stand beside each other.
  void gradient_beside(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                       Scratch &scratch) const;
  /// Adds those products of a sample's delta and rows of the weight that are listed, ascending or descending.
  void products_of_sample(const float *delta, float *adjoint, const Parameter &weight, const List &wanted, Scratch &scratch) const;
};

/// Adds the sum of the deltas of steps first ... last - 1.
void bias_gradient(const Worker &w, const Rows &delta, int first, int last, float *gradient);

/// target = sum of the biases.
void fill(const Worker &w, Rows &target, int now, std::initializer_list<const Parameter *> biases);

} // namespace snnc

#endif
