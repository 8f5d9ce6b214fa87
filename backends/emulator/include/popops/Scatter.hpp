// Windows of a tensor that get new values at positions given as data.
#ifndef SNNC_POPOPS_SCATTER_HPP
#define SNNC_POPOPS_SCATTER_HPP

#include <functional>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace popops {

/// Like XLA's scatter: dimension `indexVectorDim` of `indices` has the positions along dimensions scatterDimsToOperandDims of `operand`;
/// dimensions updateWindowDims of `updates` are the window, in which dimensions insertWindowDims of `operand` are 1. Windows are written in
/// order; a window that is not completely inside `operand` changes nothing.
void scatter(poplar::Graph &graph, const poplar::Tensor &operand, const poplar::Tensor &indices, const poplar::Tensor &updates,
             std::size_t indexVectorDim, std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
             const poplar::OptionFlags &options = {});

/// Combines a window's elements with their updates.
using UpdateComputationFunc =
    std::function<poplar::Tensor(poplar::Graph &, poplar::Tensor &, poplar::Tensor &, poplar::program::Sequence &)>;
void scatter(poplar::Graph &graph, const poplar::Tensor &operand, const poplar::Tensor &indices, const poplar::Tensor &updates,
             std::size_t indexVectorDim, std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, UpdateComputationFunc &updateComputation, poplar::program::Sequence &prog,
             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

} // namespace popops

#endif
