// Systems of equations with triangular matrices, [..., n, n].
#ifndef SNNC_POPLIN_TRIANGULAR_SOLVE_HPP
#define SNNC_POPLIN_TRIANGULAR_SOLVE_HPP

#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/MatMul.hpp>

namespace poplin {
poplar::Tensor createTriangularSolveInputLHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                                             const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape, bool leftSide,
                                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                             PlanningCache *cache = nullptr);
poplar::Tensor createTriangularSolveInputRHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                                             const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape, bool leftSide,
                                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                             PlanningCache *cache = nullptr);
/// The lower or the upper triangle, with zeros elsewhere, and ones on the diagonal if it is declared as a unit diagonal.
poplar::Tensor triangularMask(poplar::Graph &graph, const poplar::Tensor &a, bool lower, bool unitDiagonal, poplar::program::Sequence &prog,
                              const poplar::DebugContext &context = {});
/// X of A X = B, or of X A = B.
poplar::Tensor triangularSolve(poplar::Graph &graph, const poplar::Tensor &a, const poplar::Tensor &b, bool leftSide, bool lower,
                               bool unitDiagonal, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                               const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// The products to plan in advance: none.
inline std::vector<std::pair<MatMulParams, poplar::OptionFlags>>
getTriangularSolveMatMulPrePlanParameters(const poplar::Type &, const poplar::Type &, const std::vector<std::size_t> &,
                                          const std::vector<std::size_t> &, bool, bool, const poplar::OptionFlags &) {
  return {};
}
} // namespace poplin

#endif
