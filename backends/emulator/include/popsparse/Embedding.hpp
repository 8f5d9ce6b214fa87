// Rows of a sparse matrix, read and updated by their numbers.
#ifndef SNNC_POPSPARSE_EMBEDDING_HPP
#define SNNC_POPSPARSE_EMBEDDING_HPP
#include <poplar/Graph.hpp>
#include <popsparse/FullyConnected.hpp>
namespace popsparse {
namespace dynamic {
/// UNSIGNED_INT, [numIndices].
poplar::Tensor createIndicesTensor(poplar::Graph &graph, const FullyConnectedParams &params, std::size_t numIndices,
                                   const poplar::OptionFlags &options = {}, const poplar::DebugContext &context = {});
/// [numIndices, inputs]
poplar::Tensor createSliceTensor(poplar::Graph &graph, const poplar::Type &dataType, const FullyConnectedParams &params,
                                 std::size_t numIndices, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                 PlanningCache *cache = nullptr);
/// [indices, inputs]: the rows of the matrix ([outputs, inputs]) with these numbers, as dense rows.
poplar::Tensor embeddingSlice(poplar::Graph &graph, const SparseTensor &t, const poplar::Tensor &indices, poplar::program::Sequence &prog,
                              const FullyConnectedParams &params, const poplar::DebugContext &context = {},
                              const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// Adds scale * slices[i] to row indices[i], only where the matrix has a value.
void embeddingUpdateAdd(poplar::Graph &graph, const SparseTensor &t, const poplar::Tensor &slices, const poplar::Tensor &indices,
                        const poplar::Tensor &scale, poplar::program::Sequence &prog, const FullyConnectedParams &params,
                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
} // namespace dynamic
} // namespace popsparse
#endif
