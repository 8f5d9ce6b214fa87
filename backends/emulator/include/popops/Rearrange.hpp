// Other orders of elements in memory. The emulator moves elements in any order at the cost of the fragments, so grouping them has no
// advantage, and a regrouped tensor is the tensor itself.
#ifndef SNNC_POPOPS_REARRANGE_HPP
#define SNNC_POPOPS_REARRANGE_HPP
#include <vector>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poputil/VarStructure.hpp>
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
inline poplar::Tensor regroupIfBeneficial(poplar::Graph &, const poplar::Tensor &in, const poplar::Tensor &,
                                          std::vector<poplar::program::Copy> &, poplar::ComputeSet, const poplar::DebugContext & = {}) {
  return in;
}
inline poplar::Tensor regroupIfPossible(poplar::Graph &, const poplar::Tensor &t, poplar::program::Sequence &, const poputil::GroupingInfo &,
                                        const poplar::DebugContext & = {}) {
  return t;
}
inline poplar::Tensor regroupTensor(poplar::Graph &, const poplar::Tensor &t, poplar::program::Sequence &, const poplar::ComputeSet &,
                                    const poputil::GroupingInfo &, const poputil::GroupingInfo &, const poplar::DebugContext & = {}) {
  return t;
}
inline poplar::Tensor regroupTensor(poplar::Graph &, const poplar::Tensor &t, std::vector<poplar::program::Copy> &, const poplar::ComputeSet &,
                                    const poputil::GroupingInfo &, const poputil::GroupingInfo &, const poplar::DebugContext & = {}) {
  return t;
}
/// All transpositions take the same time, so none is called fast.
inline bool canUseFastTranspose(const poplar::Target &, const poplar::Type &, unsigned, unsigned, unsigned) { return false; }
/// The number of elements in 64 bits, the widest load.
inline unsigned getMinimumRegroupGrainSize(const poplar::Type &type) { return unsigned(8 / type.size()); }
} // namespace rearrange
} // namespace popops
#endif
