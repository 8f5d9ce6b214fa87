// Packing of weight rows on the tiles of a target, before they are sent to the sources.
#ifndef SNNC_PACKING_HPP
#define SNNC_PACKING_HPP

#include "layout.hpp"

#include <vector>

namespace snnc {

/// Division of the tiles of a target replica into bundles. Tile m of a bundle packs the rows for part m of the source's tiles.
class Packing {
public:
  Packing(const Population &source, const Population &target, std::size_t inputs, std::size_t bundles);

  const std::vector<Packer> &packers() const { return all; }

  /// Returns the rows that a tile collects from each group of its bundle: those of paired columns, and those of the last column of an odd number.
  poplar::Tensor collected(const Packer &p, const Parts &weights) const;

  /// Returns the columns of each piece of collected rows.
  std::vector<unsigned> widths(const Packer &p) const;

  /// Returns, for each run of source tiles with the same neurons, the number of tiles and of neurons per tile.
  std::vector<unsigned> runs(const Packer &p) const;

  /// Returns what a tile of the source reads: a piece of each bundle of the target replica with the closest samples.
  poplar::Tensor to(const Home &h, const Parts &packed) const;

private:
  const Population &source, &target;
  std::size_t inputs;
  std::vector<Packer> all;

  void add_bundle(std::size_t replica, std::size_t begin, std::size_t end);
};

} // namespace snnc

#endif
