// Sums of squares of gradients, computed by the workers of tiles, in the order of tiles and chips.
#ifndef SNNC_NORMS_HPP
#define SNNC_NORMS_HPP

#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>

#include <map>
#include <vector>

namespace snnc {

/// A sum on a tile: `parts` are added into `sum`.
struct SquareSum {
  unsigned tile;
  poplar::Tensor parts, sum;
};

class SquareSums {
public:
  explicit SquareSums(poplar::Graph &made) : graph(made) {}

  /// Returns space for the results of the workers of one vertex.
  poplar::Tensor add(unsigned tile, unsigned workers) {
    const poplar::Tensor found = on_tile(workers, "squares", tile);
    on[tile].push_back(found);
    return found;
  }

  /// Returns the sums of all tiles that have such vertices.
  const std::vector<SquareSum> &of_tiles() {
    if (tiles.empty())
      for (const auto &[tile, parts] : on)
        tiles.push_back({tile, poplar::concat(parts), on_tile(1, "tile_squares", tile)});
    return tiles;
  }

  /// Returns the sums of chips, each on the first of these tiles.
  const std::vector<SquareSum> &of_chips(unsigned tiles_of_chip) {
    if (chips.empty()) {
      std::map<unsigned, std::vector<const SquareSum *>> of;
      for (const SquareSum &t : of_tiles())
        of[t.tile / tiles_of_chip].push_back(&t);
      for (const auto &[chip, parts] : of)
        chips.push_back({parts.front()->tile, sums_of(parts), on_tile(1, "chip_squares", parts.front()->tile)});
    }
    return chips;
  }

  /// Returns the sums of the last level.
  poplar::Tensor all() {
    std::vector<const SquareSum *> last;
    for (const SquareSum &each : chips.empty() ? of_tiles() : chips)
      last.push_back(&each);
    return sums_of(last);
  }

private:
  poplar::Graph &graph;
  std::map<unsigned, std::vector<poplar::Tensor>> on;
  std::vector<SquareSum> tiles, chips;

  poplar::Tensor on_tile(std::size_t size, const char *name, unsigned tile) {
    const poplar::Tensor made = graph.addVariable(poplar::FLOAT, {size}, name);
    graph.setTileMapping(made, tile);
    return made;
  }

  static poplar::Tensor sums_of(const std::vector<const SquareSum *> &parts) {
    std::vector<poplar::Tensor> sums;
    for (const SquareSum *part : parts)
      sums.push_back(part->sum);
    return poplar::concat(sums);
  }
};

} // namespace snnc

#endif
