// Definitions of gradient_windows.hpp.
#include "gradient_windows.hpp"

#include <utility>

namespace snnc {

std::vector<PartialSum> partial_sums_of(const Table &table) {
  std::vector<PartialSum> sums;
  for (std::size_t i = 0; i < table.rows(); ++i)
    sums.push_back(
        {table.at(i, 0), table.at(i, 1), table.at(i, 2), table.at(i, 3), table.at(i, 4), table.at(i, 5), table.at(i, 6), table.at(i, 7)});
  return sums;
}

Producers::Producers(std::size_t entries, std::vector<Products> connections) : capacity(entries), from(std::move(connections)) {}

poplar::Tensor Producers::of(const PartialSum &sum) const {
  std::vector<poplar::Tensor> pieces;
  const std::vector<Place> &places = at(sum.sample);
  for (std::size_t i = sum.first; i < sum.first + sum.producers; ++i) {
    const std::size_t begin = places[i].begin + (sum.sample - places[i].sample) * capacity + sum.entry;
    pieces.push_back(places[i].parts->all.slice(begin, begin + static_cast<std::size_t>(sum.samples) * sum.entries));
  }
  return poplar::concat(pieces);
}

const std::vector<Producers::Place> &Producers::at(unsigned sample) const {
  std::vector<Place> &places = known[sample];
  if (places.empty())
    for (const Products &p : from)
      for (const Group &g : p.target.groups) {
        const Block &one = p.target.blocks[g.begin], &last = p.target.blocks[g.end - 1];
        if (sample >= one.sample && sample < last.sample + last.samples)
          places.push_back({&p.parts, p.parts.begin[g.begin], one.sample});
      }
  return places;
}

poplar::Tensor sums_of(const poplar::Tensor &reduced, const Relay &r) { return reduced.slice(r.sample, r.sample + r.samples, 1).flatten(); }

} // namespace snnc
