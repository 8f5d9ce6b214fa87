// Tensors filled with one value.
#ifndef SNNC_POPOPS_FILL_HPP
#define SNNC_POPOPS_FILL_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
namespace detail {
void fill(poplar::Graph &graph, const poplar::Tensor &tensor, poplar::program::Sequence &prog, poplar::HostValue value,
          const poplar::DebugContext &context);
void fill(poplar::Graph &graph, const poplar::Tensor &tensor, poplar::ComputeSet computeSet, poplar::HostValue value);
} // namespace detail
/// Sets every element to `value`.
template <class T>
void fill(poplar::Graph &graph, const poplar::Tensor &tensor, poplar::program::Sequence &prog, T value, const poplar::DebugContext &context = {}) {
  detail::fill(graph, tensor, prog, poplar::HostValue(value), context);
}
template <class T> void fill(poplar::Graph &graph, const poplar::Tensor &tensor, poplar::ComputeSet computeSet, T value) {
  detail::fill(graph, tensor, computeSet, poplar::HostValue(value));
}
} // namespace popops
#endif
