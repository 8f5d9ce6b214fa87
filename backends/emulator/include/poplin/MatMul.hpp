// Products of matrices.
#ifndef SNNC_POPLIN_MAT_MUL_HPP
#define SNNC_POPLIN_MAT_MUL_HPP

#include <cstddef>
#include <iosfwd>
#include <set>
#include <tuple>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace poplin {

/// Plans that several products share; the emulator plans each time.
class PlanningCache {
public:
  std::size_t size() const { return 0; }
};
namespace matmul {
using PlanningCache = poplin::PlanningCache;
}

/// [m,k] times [k,n] or [k]; a left operand [k] is a row.
poplar::Tensor matMul(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B, poplar::program::Sequence &prog,
                      const poplar::Type &outputType, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                      PlanningCache *cache = nullptr);
poplar::Tensor matMul(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B, poplar::program::Sequence &prog,
                      const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
void matMulWithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B, poplar::Tensor &out,
                      poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                      PlanningCache *cache = nullptr);
/// C += k * A * B
void matMulAcc(poplar::Graph &graph, const poplar::Tensor &C, float k, const poplar::Tensor &A, const poplar::Tensor &B,
               poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
               PlanningCache *cache = nullptr);
void matMulAcc(poplar::Graph &graph, const poplar::Tensor &C, const poplar::Tensor &k, const poplar::Tensor &A, const poplar::Tensor &B,
               poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
               PlanningCache *cache = nullptr);

/// [g,m,k] times [g,k,n], one product for each g.
poplar::Tensor matMulGrouped(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B, poplar::program::Sequence &prog,
                             const poplar::Type &outputType, const poplar::DebugContext &context = {},
                             const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
void matMulGroupedWithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B, poplar::Tensor &out,
                             poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                             const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
void matMulGroupedAcc(poplar::Graph &graph, const poplar::Tensor &C, float k, const poplar::Tensor &A, const poplar::Tensor &B,
                      poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                      PlanningCache *cache = nullptr);
void matMulGroupedAcc(poplar::Graph &graph, const poplar::Tensor &C, const poplar::Tensor &k, const poplar::Tensor &A,
                      const poplar::Tensor &B, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                      const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);

/// Operands mapped as the product reads them.
poplar::Tensor createMatMulInputLHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                                    const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,
                                    const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                    PlanningCache *cache = nullptr);
poplar::Tensor createMatMulInputLHS(poplar::Graph &graph, const poplar::Type &dataType, const std::vector<std::size_t> &aShape,
                                    const std::vector<std::size_t> &bShape, const poplar::DebugContext &context = {},
                                    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
poplar::Tensor createMatMulInputRHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                                    const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,
                                    const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                    PlanningCache *cache = nullptr);
poplar::Tensor createMatMulInputRHS(poplar::Graph &graph, const poplar::Type &dataType, const std::vector<std::size_t> &aShape,
                                    const std::vector<std::size_t> &bShape, const poplar::DebugContext &context = {},
                                    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
poplar::Tensor createMatMulOutput(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                                  const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,
                                  const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                  PlanningCache *cache = nullptr);
poplar::Tensor createMatMulGroupedInputLHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                                           const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,
                                           const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                           PlanningCache *cache = nullptr);
poplar::Tensor createMatMulGroupedInputRHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                                           const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,
                                           const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                           PlanningCache *cache = nullptr);
poplar::Tensor createMatMulGroupedOutput(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                                         const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,
                                         const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                         PlanningCache *cache = nullptr);
inline poplar::Tensor createMatMulOutput(poplar::Graph &graph, const poplar::Type &dataType, const std::vector<std::size_t> &aShape,
                                         const std::vector<std::size_t> &bShape, const poplar::DebugContext &context = {},
                                         const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr) {
  return createMatMulOutput(graph, dataType, dataType, aShape, bShape, context, options, cache);
}
/// The right operand in the order that the product reads; the emulator needs no other order.
inline poplar::Tensor preArrangeMatMulInputRHS(poplar::Graph &, const std::vector<std::size_t> &, const poplar::Tensor &B,
                                               poplar::program::Sequence &, const poplar::Type &, const poplar::DebugContext & = {},
                                               const poplar::OptionFlags & = {}, PlanningCache * = nullptr) {
  return B;
}
inline poplar::Tensor preArrangeMatMulInputRHS(poplar::Graph &, const std::vector<std::size_t> &, const poplar::Tensor &B,
                                               poplar::program::Sequence &, const poplar::DebugContext & = {},
                                               const poplar::OptionFlags & = {}, PlanningCache * = nullptr) {
  return B;
}
inline poplar::Tensor preArrangeMatMulGroupedInputRHS(poplar::Graph &, const std::vector<std::size_t> &, const poplar::Tensor &B,
                                                      poplar::program::Sequence &, const poplar::Type &, const poplar::DebugContext & = {},
                                                      const poplar::OptionFlags & = {}, PlanningCache * = nullptr) {
  return B;
}
/// Writes how the product is divided into blocks, one line.
void matMulReportPlan(std::ostream &out, const poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                      const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,
                      const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
void matMulGroupedReportPlan(std::ostream &out, const poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,
                             const std::vector<std::size_t> &aShape, const std::vector<std::size_t> &bShape,
                             const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// The operand as another product reads it; the emulator does not move it.
poplar::Tensor transposeGroupedMatrix(const poplar::Tensor &A);

/// The types and shapes of a product, to be planned in advance.
struct MatMulParams {
  poplar::Type inputType, outputType;
  std::vector<std::size_t> aShape, bShape;
  friend bool operator<(const MatMulParams &a, const MatMulParams &b);
};
using MatMulPlanParams = std::tuple<const poplar::Target *, const MatMulParams, const poplar::OptionFlags *>;
inline void preplanMatMuls(const std::set<MatMulPlanParams> &, PlanningCache &) {}
/// Throws invalid_option for a name that no product has.
void matmulValidateOptions(const poplar::OptionFlags &options);

} // namespace poplin

#endif
