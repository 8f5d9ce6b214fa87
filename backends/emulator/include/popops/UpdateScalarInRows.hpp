// One element of each row, decreased.
#ifndef SNNC_POPOPS_UPDATE_SCALAR_IN_ROWS_HPP
#define SNNC_POPOPS_UPDATE_SCALAR_IN_ROWS_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// params[i, indices[i]] -= 1, in place; no change if the index is not a column (as with MASKED_LABEL_CODE).
void updateScalarInRows(poplar::Graph &graph, const poplar::Tensor &params, const poplar::Tensor &indices, poplar::program::Sequence &prog,
                        const poplar::DebugContext &context = {});
} // namespace popops
#endif
