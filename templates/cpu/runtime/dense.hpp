// Dense connections: rows of weights of the neurons that fired, sparse weight gradients, and products for dense values.
#ifndef SNNC_DENSE_HPP
#define SNNC_DENSE_HPP

#include "parameters.hpp"
#include "values.hpp"

#include <initializer_list>

namespace snnc {

struct Part;

class Dense {
public:
  Dense(std::size_t inputs, std::size_t outputs);
  ~Dense();

  /// Adds the input at steps first ... last - 1, which the source sent `delay` steps earlier, to the rows of `target`.
  void forward(const Worker &w, const Source &source, int delay, int first, int last, const Parameter &weight, Rows &target,
               Scratch &scratch) const;

  /// Adds the gradient of the weight over steps first ... last - 1, whose deltas are stored; `fresh`: overwrites the gradient instead.
  void weight_gradient(const Worker &w, const Source &source, int delay, const Rows &delta, int first, int last, float *gradient,
                       bool fresh, Scratch &scratch) const;
  /// Adds the gradient over the samples of all workers, in order, for the rows in part `part` of `parts` equal parts.
  void shared_gradient(const std::vector<Worker> &workers, int part, int parts, const Source &source, int delay, const Rows &delta,
                       int first, int last, float *gradient, bool fresh, Scratch &scratch) const;

  /// Makes later calls read the weight in bfloat16, from the copies that `round` and `pack` fill.
  void keep_rounded();

  /// Prepares for `input_gradient`; `copied`: allocates the copy that `pack` fills.
  void keep_packed(bool copied);

  /// Copies the weight for `forward`, in bfloat16; all workers share the work.
  void round(const Parameter &weight, int worker, int workers);

  /// Copies the weight for `input_gradient`; all workers share the work.
  void pack(const Parameter &weight, int worker, int workers);

  /// Adds delta[t] W to the adjoint of the source at step t - delay, for t = first ... last - 1. A worker with a single sample, or without
  /// a copy, reads the weight itself; the sums are bitwise the same in both cases.
  void input_gradient(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                      Scratch &scratch) const;

  /// Like `input_gradient`, but only for the neurons that `near` lists at step t - delay.
  void near_gradient(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                     const Source &near, Scratch &scratch) const;

  const Panels panels;

private:
  Array<float> packed;
  /// The ids of all source neurons, ascending and then descending.
  std::vector<std::uint32_t> all;
  /// In bfloat16: the rows of weights in chunks, and the packed copy in pairs of outputs.
  Array<BFloat16> rounded_rows;
  Array<std::uint32_t> packed_pairs;

  void gradient_of(const Part &part, const Source &source, int delay, const Rows &delta, int first, int last, float *gradient, bool fresh,
                   Scratch &scratch) const;
  std::size_t pairs() const { return (panels.outputs + 1) / 2; }
  /// Calls work(rows of weights, distance between rows) for the panel that begins at column `first`.
  template <class Work> void with_rows(const Parameter &weight, std::size_t first, const Work &work) const;
  /// Like `forward`, for weights that do not fit in the cache: rows are read once, in order, and added if their source neuron fired.
  void stream(const Worker &w, const Source &source, int t, const Parameter &weight, Rows &target, int now, Scratch &scratch) const;
  /// Like `input_gradient`, without a copy of the weight: samples are interleaved.
  void gradient_beside(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                       Scratch &scratch) const;
  /// Adds the products of a sample's delta and the listed rows of the weight, in the order of the list.
  void products_of_sample(const float *delta, float *adjoint, const Parameter &weight, const List &wanted, Scratch &scratch) const;
};

/// Adds the sum of the deltas of steps first ... last - 1.
void bias_gradient(const Worker &w, const Rows &delta, int first, int last, float *gradient);

/// Sets target to the sum of the biases.
void fill(const Worker &w, Rows &target, int now, std::initializer_list<const Parameter *> biases);

} // namespace snnc

#endif
