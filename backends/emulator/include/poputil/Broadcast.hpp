// Shapes that are broadcast to each other.
#ifndef SNNC_POPUTIL_BROADCAST_HPP
#define SNNC_POPUTIL_BROADCAST_HPP
#include <cstddef>
#include <vector>
#include <poplar/Tensor.hpp>
namespace poputil {
/// Prepends dimensions of size 1 to the shorter shape.
void expandToMatchRanks(poplar::Tensor &a, poplar::Tensor &b);
/// Broadcasts the tensors to a common shape, by NumPy's rule.
void broadcastToMatch(poplar::Tensor &a, const std::vector<std::size_t> &shape);
void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b);
void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b, poplar::Tensor &c);
bool canBroadcastToMatch(const poplar::Tensor &a, const poplar::Tensor &b);
} // namespace poputil
#endif
