// Tiles that a program reserves for transfers.
#ifndef SNNC_GCL_TILE_ALLOCATION_HPP
#define SNNC_GCL_TILE_ALLOCATION_HPP
#include <vector>
#include <poplar/Graph.hpp>
namespace gcl {
/// Minimum number of tiles for transfers that overlap with computing.
inline unsigned getMinIoTiles(const poplar::Graph &) { return 32; }
/// `number` tiles of each IPU, for transfers.
inline std::vector<unsigned> perIPUTiles(const poplar::Graph &graph, unsigned offset, unsigned number, bool = true, bool = true) {
  std::vector<unsigned> tiles;
  for (unsigned i = 0; i < number && offset + i < graph.getTarget().getTilesPerIPU(); ++i)
    tiles.push_back(offset + i);
  return tiles;
}
} // namespace gcl
#endif
