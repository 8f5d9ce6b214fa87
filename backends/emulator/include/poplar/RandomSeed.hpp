// Seeds of the tiles: the emulator stores and returns them, but does not use them.
#ifndef SNNC_POPLAR_RANDOM_SEED_HPP
#define SNNC_POPLAR_RANDOM_SEED_HPP

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace poplar {

/// UNSIGNED_INT {tiles, workers, 4}, each tile's part on that tile: zeros.
inline Tensor getHwSeeds(Graph &graph, program::Sequence &, const DebugContext &context = {}) {
  const std::size_t tiles = graph.getTarget().getNumTiles();
  const Tensor seeds = graph.addVariable(UNSIGNED_INT, {tiles, graph.getTarget().getNumWorkerContexts(), 4}, DebugContext(context, "seeds"));
  for (std::size_t tile = 0; tile < tiles; ++tile)
    graph.setTileMapping(seeds[tile], unsigned(tile));
  graph.setInitialValue(seeds, 0u);
  return seeds;
}
inline void setHwSeeds(Graph &, const Tensor &, program::Sequence &, const DebugContext & = {}) {}

} // namespace poplar

#endif
