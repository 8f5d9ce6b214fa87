// Weighted sums under a kernel of B-splines.
#ifndef SNNC_POPOPS_SPLINE_WEIGHTING_HPP
#define SNNC_POPOPS_SPLINE_WEIGHTING_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
namespace popops {
/// out[e][o] = sum of basis[e][s] input[e][i] weight[weightIndex[e][s]][i][o] over s and i.
poplar::Tensor splineWeighting(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &weight, const poplar::Tensor &basis,
                               const poplar::Tensor &weightIndex, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popops
#endif
