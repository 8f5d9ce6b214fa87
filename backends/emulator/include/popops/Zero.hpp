// Tensors filled with zeros.
#ifndef SNNC_POPOPS_ZERO_HPP
#define SNNC_POPOPS_ZERO_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <vector>
namespace popops {
/// Appends vertices that write zeros.
void zero(poplar::Graph &graph, const poplar::Tensor &tensor, poplar::ComputeSet computeSet);
/// The same for parts of a tensor, all on one tile or listed by tile.
void zero(poplar::Graph &graph, poplar::Tensor tensor, const std::vector<poplar::Interval> &regions, unsigned tile, poplar::ComputeSet computeSet);
void zero(poplar::Graph &graph, const poplar::Tensor &tensor, unsigned tile, poplar::ComputeSet computeSet);
void zero(poplar::Graph &graph, const poplar::Tensor &tensor, const std::vector<std::vector<poplar::Interval>> &mapping,
          poplar::ComputeSet computeSet);
void zero(poplar::Graph &graph, const poplar::Tensor &tensor, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popops
#endif
