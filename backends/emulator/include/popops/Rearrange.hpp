// Other orders of elements in memory. The emulator moves elements in any order at the cost of the fragments, so grouping them has no
// advantage, and a regrouped tensor is the tensor itself.
#ifndef SNNC_POPOPS_REARRANGE_HPP
#define SNNC_POPOPS_REARRANGE_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
namespace rearrange {
/// Swaps the last two dimensions, with vertices added to the compute set.
poplar::Tensor partialTranspose(poplar::Graph &graph, const poplar::Tensor &in, const poplar::ComputeSet &computeSet,
                                const poplar::DebugContext &context = {});
/// Swaps the last two dimensions; its compute set is appended to a program.
poplar::Tensor partialTranspose(poplar::Graph &graph, const poplar::Tensor &in, poplar::program::Sequence &prog,
                                const poplar::DebugContext &context = {});
inline poplar::Tensor regroupIfBeneficial(poplar::Graph &, const poplar::Tensor &in, const poplar::Tensor &, poplar::program::Sequence &,
                                          const poplar::DebugContext & = {}) {
  return in;
}
inline poplar::Tensor regroupIfBeneficial(poplar::Graph &, const poplar::Tensor &in, std::size_t, poplar::program::Sequence &,
                                          const poplar::DebugContext & = {}) {
  return in;
}
} // namespace rearrange
} // namespace popops
#endif
