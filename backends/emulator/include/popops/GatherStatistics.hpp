// How many elements lie between levels.
#ifndef SNNC_POPOPS_GATHER_STATISTICS_HPP
#define SNNC_POPOPS_GATHER_STATISTICS_HPP

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace popops {

/// One number more than there are levels, UNSIGNED_INT (FLOAT with the option useFloatArithmetic): number n counts elements from
/// levels[n - 1] on, and below levels[n].
poplar::Tensor histogram(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &levels, bool absoluteOfInput,
                         poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                         const poplar::OptionFlags &options = {});
/// Into `output`, or added to it.
void histogram(poplar::Graph &graph, const poplar::Tensor &input, poplar::Tensor &output, bool updateOutput, const poplar::Tensor &levels,
               bool absoluteOfInput, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
               const poplar::OptionFlags &options = {});

} // namespace popops

#endif
