// Values of B-splines, for convolutions over graphs.
#ifndef SNNC_POPOPS_SPLINE_BASIS_HPP
#define SNNC_POPOPS_SPLINE_BASIS_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
namespace popops {
/// For each edge's coordinates (`pseudo`, [edges, dimensions], from 0 to 1), the (degree + 1)^dimensions B-splines that are not zero
/// there, and the numbers of their weights in a grid of `kernelSize` weights: both [edges, splines]. Degree: 1, 2 or 3.
/// Source: M. Fey et al., SplineCNN, CVPR 2018.
void splineBasis(poplar::Graph &graph, const poplar::Tensor &pseudo, const poplar::Tensor &kernelSize, const poplar::Tensor &isOpenSpline,
                 const poplar::Tensor &basis, const poplar::Tensor &weightIndex, unsigned degree, poplar::program::Sequence &prog,
                 const poplar::DebugContext &context = {});
} // namespace popops
#endif
