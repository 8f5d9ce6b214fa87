// Connections given by tables, with one entry per wire, sorted by source: sparse weights, one-to-one links, slices, sums, averages.
#ifndef SNNC_WIRING_HPP
#define SNNC_WIRING_HPP

#include "snnc_files.hpp"
#include "values.hpp"

namespace snnc {

/// Returns the floats of a table that contains their bits.
Array<float> constants(const Table &bits);

class Wiring {
public:
  /// `begin`: first entry of each source, then the number of entries; `entries`: target and index of the weight.
  Wiring(const Table &begin, const Table &entries);

  /// target[to] += weight * source[from] over all wires; `weights` are those of a parameter, or constants.
  void forward(const Worker &w, const Source &source, int t, const float *weights, Rows &target, int now, Scratch &scratch) const;
  /// gradient[index] += delta[to] * source[from].
  void weight_gradient(const Worker &w, const Source &source, int delay, const Rows &delta, int t, float *gradient, Scratch &scratch) const;
  /// adjoint[from] += weight * delta[to].
  void input_gradient(const Worker &w, const Rows &delta, int t, const float *weights, Rows &adjoint, int delay) const;

private:
  const Table &begin, &entries;
  /// If every source i has one wire, to target first + i: `first`; otherwise -1.
  long long first = -1;
  /// In this case, source i has weight i / run: one weight for all sources, one per source, or one per channel.
  std::size_t run = 1;

  /// Calls use(first, count, weight) for the sources of each weight.
  template <class Use> void for_runs(const Use &use) const;
  std::size_t to(std::size_t entry) const;
  std::size_t index(std::size_t entry) const;
};

/// Adds bias[index[i]] to target[i], and computes the adjoint.
class Biases {
public:
  explicit Biases(const Table &index);

  void forward(const Worker &w, Rows &target, int now, const float *bias) const;
  void gradient(const Worker &w, const Rows &delta, int t, float *gradient) const;

private:
  const Table &index;
  /// If target i has bias i / run: `run`; otherwise 0.
  std::size_t run;
};

} // namespace snnc

#endif
