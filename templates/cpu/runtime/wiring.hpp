// Connections given by a table: one entry per weighted wire, sorted by source. Sparse weights, one-to-one links, slices, sums, averages.
#ifndef SNNC_WIRING_HPP
#define SNNC_WIRING_HPP

#include "snnc_files.hpp"
#include "values.hpp"

namespace snnc {

/// Floats in a table, stored as their bits.
Array<float> constants(const Table &bits);

class Wiring {
public:
  /// `begin`: first entry of each source, then their number; `entries`: target and index of the weight.
  Wiring(const Table &begin, const Table &entries);

  /// target[to] += weight * source[from] over all wires; `weights` are a parameter's or constants.
  void forward(const Worker &w, const Source &source, int t, const float *weights, Rows &target, int now, Scratch &scratch) const;
  /// gradient[index] += delta[to] * source[from].
  void weight_gradient(const Worker &w, const Source &source, int delay, const Rows &delta, int t, float *gradient, Scratch &scratch) const;
  /// adjoint[from] += weight * delta[to].
  void input_gradient(const Worker &w, const Rows &delta, int t, const float *weights, Rows &adjoint, int delay) const;

private:
  const Table &begin, &entries;
  /// If source i has one wire, to first + i; -1 if the wires are different.
  long long first = -1;
  /// Of such, source i has weight i / run: all have one weight, each has its own, or those of a channel have one.
  std::size_t run = 1;

  /// Calls use(first, count, weight) for the sources of each weight.
  template <class Use> void for_runs(const Use &use) const {
    const std::size_t sources = begin.numbers.size() - 1;
    for (std::size_t at = 0, weight = 0; at < sources; at += run, ++weight)
      use(at, run, weight);
  }

  std::size_t to(std::size_t entry) const { return entries.numbers[2 * entry]; }
  std::size_t index(std::size_t entry) const { return entries.numbers[2 * entry + 1]; }
};

/// target[i] += bias[index[i]], and its adjoint.
class Biases {
public:
  explicit Biases(const Table &index);

  void forward(const Worker &w, Rows &target, int now, const float *bias) const;
  void gradient(const Worker &w, const Rows &delta, int t, float *gradient) const;

private:
  const Table &index;
  /// Value i has bias i / run; 0: otherwise.
  std::size_t run;
};

} // namespace snnc

#endif
