#ifndef SNNC_POPOPS_CAST_HPP
#define SNNC_POPOPS_CAST_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// Converts the elements to another type.
poplar::Tensor cast(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Type &dstType, poplar::program::Sequence &prog,
                    const poplar::DebugContext &context = {});
poplar::Tensor cast(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Type &dstType, poplar::ComputeSet computeSet,
                    const poplar::DebugContext &context = {});
poplar::program::Program cast(poplar::Graph &graph, poplar::Tensor src, poplar::Tensor dst, const poplar::DebugContext &context = {});
void cast(poplar::Graph &graph, poplar::Tensor src, poplar::Tensor dst, poplar::ComputeSet computeSet);
inline void castWithOutput(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Tensor &dst, poplar::program::Sequence &prog,
                           const poplar::DebugContext &context = {}) {
  prog.add(cast(graph, src, dst, context));
}
/// To quarters in the format and scale of `metadata` (poplar/MetadataCreation.hpp); values that are too large give the largest one.
poplar::Tensor cast(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Type &dstType, const poplar::Tensor &metadata,
                    poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
poplar::Tensor cast(poplar::Graph &graph, poplar::Tensor src, const poplar::Type &dstType, const poplar::Tensor &metadata,
                    poplar::ComputeSet computeSet, const poplar::DebugContext &context = {});
/// A BOOL: whether a cast of `input`, one float or half, has an error of at most `tolerance` times the value.
poplar::Tensor checkAccuracyWhenCast(poplar::Graph &graph, const poplar::Tensor &input, poplar::Type outputType, double tolerance,
                                     poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
namespace detail {
bool castsQuarters(const poplar::Tensor &src, const poplar::Tensor &dst);
void castQuarters(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Tensor &dst, poplar::ComputeSet computeSet);
} // namespace detail
} // namespace popops
#endif
