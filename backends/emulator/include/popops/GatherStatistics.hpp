// Numbers of elements between levels.
#ifndef SNNC_POPOPS_GATHER_STATISTICS_HPP
#define SNNC_POPOPS_GATHER_STATISTICS_HPP

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace popops {

/// One more count than there are levels, UNSIGNED_INT (FLOAT with the option useFloatArithmetic). Count n is the number of elements from
/// levels[n - 1] up to, but excluding, levels[n].
poplar::Tensor histogram(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &levels, bool absoluteOfInput,
                         poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                         const poplar::OptionFlags &options = {});
/// Written to `output`, or added to it.
void histogram(poplar::Graph &graph, const poplar::Tensor &input, poplar::Tensor &output, bool updateOutput, const poplar::Tensor &levels,
               bool absoluteOfInput, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
               const poplar::OptionFlags &options = {});

} // namespace popops

#endif
