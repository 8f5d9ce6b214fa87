// One element of each row.
#ifndef SNNC_POPOPS_SELECT_SCALAR_FROM_ROWS_HPP
#define SNNC_POPOPS_SELECT_SCALAR_FROM_ROWS_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// [rows]: params[i, indices[i]] of params [rows, columns]; 0 if the index is not a column (as with MASKED_LABEL_CODE).
poplar::Tensor selectScalarFromRows(poplar::Graph &graph, const poplar::Tensor &params, const poplar::Tensor &indices,
                                    poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popops
#endif
