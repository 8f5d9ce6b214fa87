#ifndef SNNC_POPOPS_CAST_HPP
#define SNNC_POPOPS_CAST_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// The elements in another type.
poplar::Tensor cast(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Type &dstType, poplar::program::Sequence &prog,
                    const poplar::DebugContext &context = {});
poplar::Tensor cast(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Type &dstType, poplar::ComputeSet computeSet,
                    const poplar::DebugContext &context = {});
poplar::program::Program cast(poplar::Graph &graph, poplar::Tensor src, poplar::Tensor dst, const poplar::DebugContext &context = {});
void cast(poplar::Graph &graph, poplar::Tensor src, poplar::Tensor dst, poplar::ComputeSet computeSet);
} // namespace popops
#endif
