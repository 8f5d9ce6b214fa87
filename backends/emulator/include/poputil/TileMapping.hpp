// Mapping of tensors' elements to tiles.
#ifndef SNNC_POPUTIL_TILE_MAPPING_HPP
#define SNNC_POPUTIL_TILE_MAPPING_HPP

#include <utility>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Tensor.hpp>
#include <poputil/VarStructure.hpp>
#include <poputil/exceptions.hpp>

namespace poputil {

/// Consecutive ranges of elements for consecutive tiles, as even as `grainSize` and `minElementsPerTile` allow.
std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Graph &graph, std::vector<std::size_t> shape,
                                                                 unsigned minElementsPerTile, unsigned grainSize, unsigned offset = 0,
                                                                 bool ascendingOrder = true);
std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Target &target, std::vector<std::size_t> shape,
                                                                 unsigned minElementsPerTile, unsigned grainSize, unsigned offset = 0,
                                                                 bool ascendingOrder = true);
/// With at least 128 bytes per tile and grains of 8 bytes.
std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Graph &graph, const poplar::Tensor &tensor,
                                                                 unsigned offset = 0, bool ascendingOrder = true);
std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Target &target, const std::vector<std::size_t> &shape,
                                                                 poplar::Type elementType, unsigned offset = 0, bool ascendingOrder = true);
/// Also returns the tile after the last one that contains elements.
std::pair<poplar::Graph::TileToTensorMapping, unsigned> calcLinearTileMappingAndNewOffset(const poplar::Graph &graph, const poplar::Tensor &tensor,
                                                                                          unsigned offset = 0);
/// A tile that depends on the shape, so that not all small tensors start on tile 0.
std::size_t chooseMappingOffset(std::size_t numTiles, const std::vector<std::size_t> &shape, std::size_t seed = 0x9e3779b9u);
void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned minElementsPerTile, unsigned grainSize,
                       unsigned offset = 0, bool ascendingOrder = true);
void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &tensor);
/// Maps elements that have no tile.
void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned offset = 0, bool ascendingOrder = true);
void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned minElementsPerTile, unsigned grainSize,
                                 unsigned offset, bool ascendingOrder = true);
/// The difference between the largest and smallest number of elements on a tile.
unsigned getTileImbalance(const poplar::Graph::TileToTensorMapping &mapping, unsigned minElementsPerTile = 0, unsigned grainSize = 1);
unsigned getTileImbalance(const poplar::Graph &graph, const poplar::Tensor &tensor, unsigned minElementsPerTile = 0,
                          unsigned grainSize = 1);
/// Its elements are on the same tiles of another IPU.
poplar::Tensor cloneToIpu(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned ipu, const poplar::DebugContext &context = {},
                          poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// A copy of `tensor` on another IPU, filled by `prog`.
poplar::Tensor copyToIpu(poplar::Graph &graph, const poplar::Tensor &tensor, poplar::program::Sequence &prog, unsigned ipu,
                         const poplar::DebugContext &context = {},
                         poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// Prepares this copy; the caller adds Copy(copySrc, copyDst).
poplar::Tensor createIpuCopy(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned ipu, poplar::Tensor &copySrc, poplar::Tensor &copyDst,
                             const poplar::DebugContext &context = {},
                             poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
/// A clone on the tiles with the same numbers in another virtual graph.
poplar::Tensor cloneToGraph(poplar::Graph &srcGraph, poplar::Graph &dstGraph, const poplar::Tensor &tensor, const poplar::DebugContext &context = {},
                            poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// A clone without aliases: if elements occur several times it is mapped linearly. Also returns the next offset.
std::pair<poplar::Tensor, unsigned> cloneAndExpandAliasing(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned offset = 0,
                                                           const poplar::DebugContext &context = {});
/// A vector as long as dimension `dim`, to be broadcast over `fullTensor`, on the tiles of the first elements of its slices.
poplar::Tensor createBroadcastOperand(poplar::Graph &graph, const poplar::Tensor &fullTensor, const poplar::Type &type, unsigned dim,
                                      bool ditherMapping = false, const poplar::DebugContext &context = {});
/// The n-th tile of a mapping with an offset, and the inverse.
unsigned transformTileIndex(unsigned tile, unsigned numTiles, unsigned offset, bool ascending);
unsigned invTransformTileIndex(unsigned tile, unsigned numTiles, unsigned offset, bool ascending);

/// Records where vertices read tensors, and maps tensors accordingly.
class TensorUseTracker {
public:
  enum class MappingMethod { OptimizeHaloRegions, ConstrainMappingToUsedTiles, None };
  /// The start and the order apply to elements that no vertex uses: these stay unmapped.
  explicit TensorUseTracker(unsigned numTiles, unsigned startTile = 0, bool ascendingMappingOrder = true);
  /// A vertex of `tile` uses the elements.
  void add(const poplar::Graph &graph, unsigned tile, const poplar::Tensor &tensor);
  void add(TensorUseTracker other);
  /// Divides elements used by several tiles among them in grains, so that each has one tile; with `extendPartialUsage` unused elements of
  /// a tensor follow used ones.
  void resolve(const poplar::Graph &graph, unsigned grainSize, unsigned minElementsPerTile, bool extendPartialUsage = false,
               MappingMethod method = MappingMethod::None);
  /// Resolves the uses, and maps each element to its tile.
  void mapTensorsByUse(poplar::Graph &graph, unsigned grainSize, unsigned minElementsPerTile, bool extendPartialUsage = false,
                       MappingMethod method = MappingMethod::None);
  bool empty() const { return uses_.empty(); }

private:
  struct Use {
    unsigned tile;
    poplar::Tensor tensor;
  };
  unsigned numTiles_;
  std::vector<Use> uses_;
};

/// Whether two consecutive elements along the dimension are on different tiles, or IPUs.
bool dimIsSplitOverTiles(const poplar::Graph &graph, const poplar::Tensor &tensor, unsigned dimension);
bool dimIsSplitOverIPUs(const poplar::Graph &graph, const poplar::Tensor &tensor, unsigned dimension);

} // namespace poputil

#endif
