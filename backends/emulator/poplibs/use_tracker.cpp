// Mappings that follow the tiles of the reading vertices.
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/exceptions.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "../src/graph_data.hpp"
#include "builtin.hpp"

namespace poputil {

using poplar::Graph;
using poplar::Interval;
using poplar::Tensor;

TensorUseTracker::TensorUseTracker(unsigned numTiles, unsigned, bool) : numTiles_(numTiles) {}

void TensorUseTracker::add(const Graph &, unsigned tile, const Tensor &tensor) {
  if (tile >= numTiles_)
    throw poplibs_error("TensorUseTracker: tile " + std::to_string(tile) + " of " + std::to_string(numTiles_));
  uses_.push_back({tile, tensor.flatten()});
}

void TensorUseTracker::add(TensorUseTracker other) { std::move(other.uses_.begin(), other.uses_.end(), std::back_inserter(uses_)); }

namespace {

/// The tiles that use the elements from one position of a variable up to the next.
using Users = std::map<std::size_t, std::set<unsigned>>;

void addUse(Users &users, const Interval &range, unsigned tile) {
  const auto split = [&](std::size_t at) {
    auto next = users.upper_bound(at);
    return users.emplace(at, next == users.begin() ? std::set<unsigned>() : std::prev(next)->second).first;
  };
  split(range.end());
  for (auto part = split(range.begin()); part->first != range.end(); ++part)
    part->second.insert(tile);
}

/// Elements without users get the users of those before them, otherwise of those after them.
void extendUse(Users &users, std::size_t elements) {
  users.emplace(elements, std::set<unsigned>());
  users.emplace(0, std::set<unsigned>());
  const auto used = [](const Users::value_type &part) { return !part.second.empty(); };
  std::set<unsigned> last = std::find_if(users.begin(), users.end(), used)->second;
  for (auto &[begin, tiles] : users) {
    if (tiles.empty())
      tiles = last;
    last = tiles;
  }
}

/// Ranges of a variable for each tile. Ranges with the same users are divided among them together.
std::vector<std::vector<Interval>> share(const Users &users, unsigned numTiles, unsigned grain, unsigned least) {
  std::map<std::set<unsigned>, std::vector<Interval>> groups;
  for (auto part = users.begin(); part != users.end() && std::next(part) != users.end(); ++part)
    if (!part->second.empty())
      groups[part->second].emplace_back(part->first, std::next(part)->first);
  std::vector<std::vector<Interval>> mapping(numTiles);
  for (auto &[tiles, ranges] : groups) {
    mergeAdjacentRegions(ranges);
    auto tile = tiles.begin();
    for (const std::vector<Interval> &part : splitRegions(ranges, grain, unsigned(tiles.size()), least))
      std::copy(part.begin(), part.end(), std::back_inserter(mapping[*tile++]));
  }
  return mapping;
}

/// All elements of a variable.
Tensor wholeOf(const Graph &graph, poplar::VariableRef variable) {
  poplar::core::GraphData &data = graph.data();
  poplar::core::View view;
  view.var = variable.id();
  view.shape = {std::size_t(data.variables[variable.id()].elements)};
  view.strides = poplar::core::rowMajorStrides(view.shape);
  return poplar::core::makeTensor(&data, data.variables[variable.id()].type, std::move(view));
}

} // namespace

void TensorUseTracker::resolve(const Graph &graph, unsigned grainSize, unsigned minElementsPerTile, bool extendPartialUsage, MappingMethod) {
  std::map<poplar::VariableRef, Users> users;
  for (const Use &use : uses_)
    for (const poplar::VariableInterval &region : use.tensor.getVarRegions())
      addUse(users[region.var], region.interval, use.tile);
  uses_.clear();
  for (auto &[variable, parts] : users) {
    const Tensor whole = wholeOf(graph, variable);
    if (extendPartialUsage)
      extendUse(parts, whole.numElements());
    const std::vector<std::vector<Interval>> mapping = share(parts, numTiles_, grainSize, minElementsPerTile);
    for (unsigned tile = 0; tile < mapping.size(); ++tile)
      for (const Interval &i : mapping[tile])
        uses_.push_back({tile, whole.slice(i)});
  }
}

void TensorUseTracker::mapTensorsByUse(Graph &graph, unsigned grainSize, unsigned minElementsPerTile, bool extendPartialUsage,
                                       MappingMethod method) {
  resolve(graph, grainSize, minElementsPerTile, extendPartialUsage, method);
  for (const Use &use : uses_)
    graph.setTileMapping(use.tensor, use.tile);
}

} // namespace poputil
