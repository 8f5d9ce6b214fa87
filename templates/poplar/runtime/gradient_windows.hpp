// Gradients of sources that return only to neurons that spiked or were close to the threshold.
#ifndef SNNC_GRADIENT_WINDOWS_HPP
#define SNNC_GRADIENT_WINDOWS_HPP

#include "layout.hpp"

#include <map>
#include <vector>

namespace snnc {

/// A sum of the partial products of `producers` groups from `first` on: samples [sample, sample + samples), entries [entry, entry + entries).
struct PartialSum {
  unsigned tile, part, sample, samples, entry, entries, first, producers;
};

std::vector<PartialSum> partial_sums_of(const Table &table);

/// The partial products of a connection: [samples][capacity] for each group of the target.
struct Products {
  const Population &target;
  const Parts &parts;
};

/// All partial products that are summed for one bus.
class Producers {
public:
  Producers(std::size_t entries, std::vector<Products> connections);

  /// Returns the input of `sum`: [producers][samples][entries].
  poplar::Tensor of(const PartialSum &sum) const;

private:
  struct Place {
    const Parts *parts;
    std::size_t begin, sample;
  };

  std::size_t capacity;
  std::vector<Products> from;
  mutable std::map<unsigned, std::vector<Place>> known;

  /// Returns the groups that contain a sample.
  const std::vector<Place> &at(unsigned sample) const;
};

/// Returns the sums of all parts for a relay's samples, [parts][samples][capacity].
poplar::Tensor sums_of(const poplar::Tensor &reduced, const Relay &r);

} // namespace snnc

#endif
