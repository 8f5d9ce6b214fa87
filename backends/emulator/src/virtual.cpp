// Virtual graphs: views of the same graph on some of its tiles.
#include <poplar/Graph.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <numeric>

#include "graph_data.hpp"

namespace poplar {

Graph Graph::selected(std::vector<unsigned> tiles, unsigned perIpu) const {
  auto selection = std::make_shared<core::TileSelection>();
  const Target &ours = getTarget();
  for (unsigned &tile : tiles)
    tile = physicalTile(tile, "a virtual graph");
  if (perIpu == 0)
    throw graph_object_creation_error("a virtual graph without tiles");
  selection->target = ours.createVirtualTarget(unsigned(tiles.size()) / perIpu, perIpu);
  selection->tiles = std::move(tiles);
  Graph view(*this, std::move(selection));
  return view;
}

Graph::Graph(const Graph &graph, std::shared_ptr<const core::TileSelection> selection)
    : data_(graph.data_), selection_(std::move(selection)) {}

unsigned Graph::physicalTile(unsigned tile, const std::string &what) const {
  const unsigned tiles = selection_ ? unsigned(selection_->tiles.size()) : data_->target.getNumTiles();
  if (tile >= tiles)
    throw invalid_tile_mapping("tile " + std::to_string(tile) + " for " + what + " on a target of " + std::to_string(tiles) + " tiles");
  return selection_ ? selection_->tiles[tile] : tile;
}

Graph Graph::createVirtualGraph(unsigned numTilesPerIPU) {
  const unsigned perIpu = getTarget().getTilesPerIPU();
  if (numTilesPerIPU > perIpu)
    throw invalid_tile_mapping("a virtual graph of " + std::to_string(numTilesPerIPU) + " tiles an IPU; there are " + std::to_string(perIpu));
  std::vector<unsigned> tiles;
  for (unsigned ipu = 0; ipu < getTarget().getNumIPUs(); ++ipu)
    for (unsigned i = 0; i < numTilesPerIPU; ++i)
      tiles.push_back(ipu * perIpu + i);
  return selected(std::move(tiles), numTilesPerIPU);
}

Graph Graph::createVirtualGraph(unsigned lowerTile, unsigned upperTile) {
  const unsigned perIpu = getTarget().getTilesPerIPU();
  if (lowerTile >= upperTile || upperTile > getTarget().getNumTiles())
    throw invalid_tile_mapping("a virtual graph of tiles [" + std::to_string(lowerTile) + ":" + std::to_string(upperTile) + "] of " +
                               std::to_string(getTarget().getNumTiles()));
  std::vector<unsigned> tiles(upperTile - lowerTile);
  std::iota(tiles.begin(), tiles.end(), lowerTile);
  const bool wholeIpus = lowerTile % perIpu == 0 && upperTile % perIpu == 0;
  return selected(std::move(tiles), wholeIpus ? perIpu : upperTile - lowerTile);
}

Graph Graph::createVirtualGraph(const std::vector<unsigned> &perIpuTiles) {
  const unsigned perIpu = getTarget().getTilesPerIPU();
  std::vector<unsigned> tiles;
  const bool global = std::any_of(perIpuTiles.begin(), perIpuTiles.end(), [&](unsigned tile) { return tile >= perIpu; });
  for (unsigned ipu = 0; ipu < (global ? 1 : getTarget().getNumIPUs()); ++ipu)
    for (unsigned tile : perIpuTiles)
      tiles.push_back(ipu * perIpu + tile);
  return selected(std::move(tiles), unsigned(perIpuTiles.size()));
}

Graph Graph::getTopLevelGraph() { return Graph(*this, nullptr); }

std::vector<std::vector<Interval>> Graph::getSortedContiguousRegions(const Tensor &tensor, ArrayRef<Interval> regions, bool removeAliases,
                                                                     std::vector<std::size_t> *aliases) const {
  struct Range {
    std::uint32_t var;
    core::Index place;
    Interval elements;
  };
  const Tensor flat = tensor.flatten();
  std::vector<Range> ranges;
  for (const Interval &region : regions) {
    std::size_t at = region.begin();
    for (const Interval &i : flat.slice(region).getContiguousRegions()) {
      const core::Block first = core::blocksOf(flat.slice(at, at + 1).data().view).at(0);
      ranges.push_back({first.var, first.start, Interval(at, at + i.size())});
      at += i.size();
    }
  }
  std::stable_sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.var < b.var || (a.var == b.var && a.place < b.place); });
  std::vector<std::vector<Interval>> result;
  const Range *last = nullptr;
  for (const Range &r : ranges) {
    const core::Index end = last && last->var == r.var ? last->place + core::Index(last->elements.size()) : -1;
    if (last && last->var == r.var && r.place < end && removeAliases) {
      if (aliases)
        aliases->push_back(r.elements.begin());
      continue;
    }
    if (end == r.place && result.back().back().end() == r.elements.begin())
      result.back().back() = Interval(result.back().back().begin(), r.elements.end());
    else if (end == r.place)
      result.back().push_back(r.elements);
    else
      result.push_back({r.elements});
    last = &r;
  }
  return result;
}

} // namespace poplar
