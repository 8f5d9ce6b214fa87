// Square roots of positive definite matrices, [..., n, n].
#ifndef SNNC_POPLIN_CHOLESKY_HPP
#define SNNC_POPLIN_CHOLESKY_HPP

#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/MatMul.hpp>

namespace poplin {
poplar::Tensor createCholeskyInput(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape, bool lower,
                                   const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                   PlanningCache *cache = nullptr);
/// The lower factor L of L L^T = a, or the upper one, with zeros in the other triangle. Only the requested triangle of `a` is read.
poplar::Tensor cholesky(poplar::Graph &graph, const poplar::Tensor &a, bool lower, poplar::program::Sequence &prog,
                        const poplar::DebugContext &context = {}, poplar::OptionFlags options = {}, PlanningCache *cache = nullptr);
void choleskyInPlace(poplar::Graph &graph, const poplar::Tensor &a, bool lower, poplar::program::Sequence &prog,
                     const poplar::DebugContext &context = {}, poplar::OptionFlags options = {}, PlanningCache *cache = nullptr);
/// The products to plan in advance: none.
inline std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getCholeskyMatMulPrePlanParameters(const poplar::Type &,
                                                                                                    const std::vector<std::size_t> &, bool,
                                                                                                    poplar::OptionFlags) {
  return {};
}
} // namespace poplin

#endif
