// poputil/TileMapping.hpp
#include <poputil/TileMapping.hpp>

#include <algorithm>

#include <poplar/exceptions.hpp>

#include "builtin.hpp"

namespace poputil {

using poplar::Graph;
using poplar::Interval;
using poplar::Tensor;

namespace {

/// Ranges of elements for each tile: on as many tiles as can each have `least` elements, in grains, as evenly as possible.
std::vector<std::vector<Interval>> linear(unsigned tiles, std::size_t elements, std::size_t least, std::size_t grain) {
  std::vector<std::vector<Interval>> mapping(tiles);
  grain = std::max<std::size_t>(1, grain);
  const std::size_t grains = (elements + grain - 1) / grain;
  const std::size_t leastGrains = std::max<std::size_t>(1, (least + grain - 1) / grain);
  const std::size_t used = std::min<std::size_t>(tiles, std::max<std::size_t>(1, grains / leastGrains));
  for (std::size_t tile = 0; tile < used; ++tile) {
    const std::size_t begin = tile * grains / used * grain, end = std::min(elements, (tile + 1) * grains / used * grain);
    if (begin < end)
      mapping[tile].emplace_back(begin, end);
  }
  return mapping;
}

void turn(std::vector<std::vector<Interval>> &mapping, unsigned offset, bool ascending) {
  if (mapping.empty())
    return;
  if (!ascending)
    std::reverse(mapping.begin(), mapping.end());
  const std::size_t n = mapping.size(), by = offset % n;
  if (ascending)
    std::rotate(mapping.begin(), mapping.begin() + std::ptrdiff_t(n - by), mapping.end());
  else
    std::rotate(mapping.begin(), mapping.begin() + std::ptrdiff_t(by), mapping.end());
}

} // namespace

std::vector<std::vector<Interval>> calcLinearTileMapping(const poplar::Target &target, std::vector<std::size_t> shape,
                                                         unsigned minElementsPerTile, unsigned grainSize, unsigned offset,
                                                         bool ascendingOrder) {
  std::size_t elements = 1;
  for (std::size_t d : shape)
    elements *= d;
  auto mapping = linear(target.getNumTiles(), elements, minElementsPerTile, grainSize);
  turn(mapping, offset, ascendingOrder);
  return mapping;
}

std::vector<std::vector<Interval>> calcLinearTileMapping(const Graph &graph, std::vector<std::size_t> shape, unsigned minElementsPerTile,
                                                         unsigned grainSize, unsigned offset, bool ascendingOrder) {
  return calcLinearTileMapping(graph.getTarget(), std::move(shape), minElementsPerTile, grainSize, offset, ascendingOrder);
}

std::vector<std::vector<Interval>> calcLinearTileMapping(const Graph &graph, const Tensor &tensor, unsigned offset, bool ascendingOrder) {
  const poplar::Target &target = graph.getTarget();
  const std::size_t bytes = target.getTypeSize(tensor.elementType());
  return calcLinearTileMapping(graph, tensor.shape(), unsigned(std::max<std::size_t>(1, 128 / bytes)),
                               target.getVectorWidth(tensor.elementType()), offset, ascendingOrder);
}

std::vector<std::vector<Interval>> calcLinearTileMapping(const poplar::Target &target, const std::vector<std::size_t> &shape, poplar::Type elementType,
                                                         unsigned offset, bool ascendingOrder) {
  const std::size_t bytes = target.getTypeSize(elementType);
  return calcLinearTileMapping(target, shape, unsigned(std::max<std::size_t>(1, 128 / bytes)), target.getVectorWidth(elementType), offset,
                               ascendingOrder);
}

std::pair<Graph::TileToTensorMapping, unsigned> calcLinearTileMappingAndNewOffset(const Graph &graph, const Tensor &tensor, unsigned offset) {
  const Graph::TileToTensorMapping plain = calcLinearTileMapping(graph, tensor);
  unsigned used = 0;
  for (unsigned tile = 0; tile < plain.size(); ++tile)
    used = plain[tile].empty() ? used : tile + 1;
  return {calcLinearTileMapping(graph, tensor, offset), (offset + used) % graph.getTarget().getNumTiles()};
}

std::size_t chooseMappingOffset(std::size_t numTiles, const std::vector<std::size_t> &shape, std::size_t seed) {
  for (const std::size_t size : shape)
    seed ^= size + 0x9e3779b9u + (seed << 6) + (seed >> 2);
  return numTiles ? seed % numTiles : 0;
}

unsigned transformTileIndex(unsigned tile, unsigned numTiles, unsigned offset, bool ascending) {
  const unsigned turned = (tile + offset) % numTiles;
  return ascending ? turned : numTiles - 1 - turned;
}

unsigned invTransformTileIndex(unsigned tile, unsigned numTiles, unsigned offset, bool ascending) {
  return ((ascending ? tile : numTiles - 1 - tile) + numTiles - offset % numTiles) % numTiles;
}

void mapTensorLinearly(Graph &graph, const Tensor &tensor, unsigned minElementsPerTile, unsigned grainSize, unsigned offset,
                       bool ascendingOrder) {
  graph.setTileMapping(tensor, calcLinearTileMapping(graph, tensor.shape(), minElementsPerTile, grainSize, offset, ascendingOrder));
}

void mapTensorLinearly(Graph &graph, const Tensor &tensor) { mapTensorLinearlyWithOffset(graph, tensor, 0); }

void mapTensorLinearlyWithOffset(Graph &graph, const Tensor &tensor, unsigned offset, bool ascendingOrder) {
  graph.setTileMapping(tensor, calcLinearTileMapping(graph, tensor, offset, ascendingOrder));
}

void mapTensorLinearlyWithOffset(Graph &graph, const Tensor &tensor, unsigned minElementsPerTile, unsigned grainSize, unsigned offset,
                                 bool ascendingOrder) {
  mapTensorLinearly(graph, tensor, minElementsPerTile, grainSize, offset, ascendingOrder);
}

unsigned getTileImbalance(const Graph::TileToTensorMapping &mapping, unsigned minElementsPerTile, unsigned grainSize) {
  std::size_t most = 0, total = 0;
  for (const std::vector<Interval> &tile : mapping) {
    std::size_t n = 0;
    for (const Interval &i : tile)
      n += i.size();
    most = std::max(most, n);
    total += n;
  }
  std::size_t balanced = 0;
  for (const std::vector<Interval> &tile : linear(unsigned(mapping.size()), total, minElementsPerTile, grainSize))
    for (const Interval &i : tile)
      balanced = std::max(balanced, i.size());
  return unsigned(most > balanced ? most - balanced : 0);
}

unsigned getTileImbalance(const Graph &graph, const Tensor &tensor, unsigned minElementsPerTile, unsigned grainSize) {
  return getTileImbalance(graph.getTileMapping(tensor), minElementsPerTile, grainSize);
}

namespace {

/// Whether two neighbours along a dimension are in different groups of `perGroup` tiles.
bool isSplit(const Graph &graph, const Tensor &tensor, unsigned dimension, unsigned perGroup) {
  const Tensor rolled = tensor.dimRoll(dimension, tensor.rank() - 1);
  const std::size_t n = rolled.dim(rolled.rank() - 1);
  std::vector<unsigned> group(rolled.numElements());
  const Graph::TileToTensorMapping mapping = graph.getTileMapping(rolled);
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    for (const Interval &i : mapping[tile])
      std::fill(group.begin() + std::ptrdiff_t(i.begin()), group.begin() + std::ptrdiff_t(i.end()), unsigned(tile / perGroup));
  for (std::size_t i = 1; i < group.size(); ++i)
    if (i % n && group[i] != group[i - 1])
      return true;
  return false;
}

} // namespace

bool dimIsSplitOverTiles(const Graph &graph, const Tensor &tensor, unsigned dimension) { return isSplit(graph, tensor, dimension, 1); }

bool dimIsSplitOverIPUs(const Graph &graph, const Tensor &tensor, unsigned dimension) {
  return isSplit(graph, tensor, dimension, graph.getTarget().getTilesPerIPU());
}

Tensor cloneToIpu(Graph &graph, const Tensor &tensor, unsigned ipu, const poplar::DebugContext &context, poplar::TensorCloneMethod method) {
  const Tensor copy = graph.clone(tensor, context, method);
  const unsigned perIpu = graph.getTarget().getTilesPerIPU();
  Graph::TileToTensorMapping moved(graph.getTarget().getNumTiles());
  if (ipu >= graph.getTarget().getNumIPUs())
    throw poplar::invalid_tile_mapping("cloneToIpu: IPU " + std::to_string(ipu) + " of " + std::to_string(graph.getTarget().getNumIPUs()));
  const Graph::TileToTensorMapping mapping = graph.getTileMapping(tensor);
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    for (const Interval &i : mapping[tile])
      moved[ipu * perIpu + tile % perIpu].push_back(i);
  graph.setTileMapping(copy, moved);
  return copy;
}

Tensor copyToIpu(Graph &graph, const Tensor &tensor, poplar::program::Sequence &prog, unsigned ipu, const poplar::DebugContext &context,
                 poplar::TensorCloneMethod method) {
  const Tensor copy = cloneToIpu(graph, tensor, ipu, context, method);
  prog.add(poplar::program::Copy(tensor, copy, false, context));
  return copy;
}

} // namespace poputil
