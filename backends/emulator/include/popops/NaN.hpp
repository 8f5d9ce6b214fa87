// Whether a tensor contains NaN.
#ifndef SNNC_POPOPS_NAN_HPP
#define SNNC_POPOPS_NAN_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// A scalar BOOL: whether any element of a FLOAT or HALF tensor is NaN (or infinite).
poplar::Tensor hasNaN(poplar::Graph &graph, const poplar::Tensor &src, poplar::program::Sequence &prog,
                      const poplar::DebugContext &context = {});
poplar::Tensor hasNaNOrInf(poplar::Graph &graph, const poplar::Tensor &src, poplar::program::Sequence &prog,
                           const poplar::DebugContext &context = {});
} // namespace popops
#endif
