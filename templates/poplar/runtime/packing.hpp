// Tiles of a target pack rows of weights side by side before they send them to the sources.
#ifndef SNNC_PACKING_HPP
#define SNNC_PACKING_HPP

#include "layout.hpp"

#include <vector>

namespace snnc {

/// Cuts the tiles of a target's replica into bundles. Tile m of a bundle packs the rows of part m of the source's tiles.
class Packing {
public:
  Packing(const Population &source, const Population &target, std::size_t inputs, std::size_t bundles);

  const std::vector<Packer> &packers() const { return all; }

  /// What a tile collects: its rows of each group of its bundle, those of the paired columns and those of the last of an odd number.
  poplar::Tensor collected(const Packer &p, const Parts &weights) const;

  /// Columns of each piece of collected rows.
  std::vector<unsigned> widths(const Packer &p) const;

  /// For consecutive tiles of the source with the same neurons: the number of tiles, and of neurons on each.
  std::vector<unsigned> runs(const Packer &p) const;

  /// What a tile of the source reads: a piece of each bundle of the target's replica with the closest samples.
  poplar::Tensor to(const Home &h, const Parts &packed) const;

private:
  const Population &source, &target;
  std::size_t inputs;
  std::vector<Packer> all;

  void add_bundle(std::size_t replica, std::size_t begin, std::size_t end);
};

} // namespace snnc

#endif
