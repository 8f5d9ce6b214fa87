// Copies of runs of rows whose places are data.
#ifndef SNNC_POPOPS_SEQUENCE_SLICE_HPP
#define SNNC_POPOPS_SEQUENCE_SLICE_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// For each i, rows tInOffset[i] … + tN[i] of `tIn` become the rows of `tOut` from tOutOffset[i] on. All other rows of `tOut` are kept, or
/// become zero with `zeroUnused`. No row may be written twice.
void sequenceSlice(poplar::Graph &graph, const poplar::Tensor &tIn, const poplar::Tensor &tOut, const poplar::Tensor &tN,
                   const poplar::Tensor &tInOffset, const poplar::Tensor &tOutOffset, bool zeroUnused, poplar::program::Sequence &prog,
                   const poplar::DebugContext &context = {});
} // namespace popops
#endif
