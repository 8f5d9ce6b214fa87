// Rows selected by index.
#ifndef SNNC_POPOPS_GATHER_HPP
#define SNNC_POPOPS_GATHER_HPP

#include <cstddef>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

struct GatherParams {
  GatherParams() = default;
  explicit GatherParams(std::size_t elements) : maxElementsPerTile(elements) {}
  std::size_t maxElementsPerTile = 65535;
};

/// A tensor to gather from along `axis`.
poplar::Tensor createGatherInput(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &operandShape, unsigned axis,
                                 GatherParams params = {}, const poplar::DebugContext &context = {});
/// Dimension `axis` is replaced by the shape of `indices`.
poplar::Tensor gather(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &indices, unsigned axis,
                      poplar::program::Sequence &prog, GatherParams params, const poplar::DebugContext &context = {},
                      const poplar::OptionFlags &options = {});
inline poplar::Tensor gather(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &indices, unsigned axis,
                             poplar::program::Sequence &prog, const poplar::DebugContext &context = {}) {
  return gather(graph, input, indices, axis, prog, GatherParams(), context);
}

/// The operand of the next function.
poplar::Tensor createGatherInput(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &inputShape,
                                 const std::vector<std::size_t> &sliceSizes, std::vector<unsigned> startIndexMap,
                                 const poplar::DebugContext &context = {});
/// One slice of `sliceSizes` for each vector of `indices` along dimension `indexVectorDim`; element i of a vector is the start in dimension
/// startIndexMap[i], at most the last one at which a slice fits; with the option remapOutOfBoundIndices, others become 0. A slice loses its dimensions `collapsedSliceDims`, of one element; its
/// others are the dimensions `offsetDims` of the result, between which are those of `indices`.
/// Source: the operation Gather of XLA.
poplar::Tensor gather(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &indices, std::size_t indexVectorDim,
                      const std::vector<std::size_t> &offsetDims, const std::vector<std::size_t> &sliceSizes,
                      const std::vector<std::size_t> &collapsedSliceDims, const std::vector<unsigned> &startIndexMap,
                      poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

} // namespace popops

#endif
