#ifndef SNNC_POPOPS_PAD_HPP
#define SNNC_POPOPS_PAD_HPP
#include <cstddef>
#include <vector>
#include <poplar/Graph.hpp>
namespace popops {
/// A constant before and behind the elements of each dimension.
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower,
                   const std::vector<std::ptrdiff_t> &upper, float value = 0.0f);
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension,
                   float value = 0.0f);
} // namespace popops
#endif
