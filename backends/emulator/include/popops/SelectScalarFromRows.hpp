#ifndef SNNC_POPOPS_SELECT_SCALAR_FROM_ROWS_HPP
#define SNNC_POPOPS_SELECT_SCALAR_FROM_ROWS_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// [rows]: params[i, indices[i]] of params [rows, columns]; 0 where the index is no column (as MASKED_LABEL_CODE).
poplar::Tensor selectScalarFromRows(poplar::Graph &graph, const poplar::Tensor &params, const poplar::Tensor &indices,
                                    poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popops
#endif
