// Where the elements of tensors go.
#ifndef SNNC_POPUTIL_TILE_MAPPING_HPP
#define SNNC_POPUTIL_TILE_MAPPING_HPP

#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Tensor.hpp>

namespace poputil {

/// Consecutive ranges of elements for consecutive tiles, as even as `grainSize` and `minElementsPerTile` allow.
std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Graph &graph, std::vector<std::size_t> shape,
                                                                 unsigned minElementsPerTile, unsigned grainSize, unsigned offset = 0,
                                                                 bool ascendingOrder = true);
std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Target &target, std::vector<std::size_t> shape,
                                                                 unsigned minElementsPerTile, unsigned grainSize, unsigned offset = 0,
                                                                 bool ascendingOrder = true);
/// With at least 128 bytes on a tile and grains of 8 bytes.
std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Graph &graph, const poplar::Tensor &tensor,
                                                                 unsigned offset = 0, bool ascendingOrder = true);
void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned minElementsPerTile, unsigned grainSize,
                       unsigned offset = 0, bool ascendingOrder = true);
void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &tensor);
/// Elements without a tile get one.
void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned offset, bool ascendingOrder = true);
void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned minElementsPerTile, unsigned grainSize,
                                 unsigned offset, bool ascendingOrder = true);
/// The difference of the most and the fewest elements on a tile.
unsigned getTileImbalance(const poplar::Graph::TileToTensorMapping &mapping, unsigned minElementsPerTile = 0, unsigned grainSize = 1);
unsigned getTileImbalance(const poplar::Graph &graph, const poplar::Tensor &tensor, unsigned minElementsPerTile = 0,
                          unsigned grainSize = 1);
/// `tensor` is mapped as `like`.
poplar::Tensor cloneToIpu(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned ipu, const poplar::DebugContext &context = {},
                          poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// A copy of `tensor` on another IPU, filled by `prog`.
poplar::Tensor copyToIpu(poplar::Graph &graph, const poplar::Tensor &tensor, poplar::program::Sequence &prog, unsigned ipu,
                         const poplar::DebugContext &context = {},
                         poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// Whether `tensor` has several elements on one tile, or lies on too few.
bool dimIsSplitOverTiles(const poplar::Graph &graph, const poplar::Tensor &tensor, unsigned dimension);
bool dimIsSplitOverIPUs(const poplar::Graph &graph, const poplar::Tensor &tensor, unsigned dimension);

} // namespace poputil

#endif
