// Products of a sparse and a dense matrix.
#ifndef SNNC_POPSPARSE_MAT_MUL_HPP
#define SNNC_POPSPARSE_MAT_MUL_HPP
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popsparse/MatMulParams.hpp>
#include <popsparse/PlanningCache.hpp>
#include <popsparse/SparseStorageFormats.hpp>
#include <popsparse/SparseTensor.hpp>
#include <popsparse/detail/Blocks.hpp>
namespace popsparse {
namespace dynamic {
SparseTensor createSparseDenseMatMulLHS(poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
                                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                        PlanningCache *cache = nullptr);
/// [groups, k, n]
poplar::Tensor createSparseDenseMatMulRHS(poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
                                          const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                          PlanningCache *cache = nullptr);
/// [groups, m, n]; with transposeLHS the sparse matrix represents [k, m].
poplar::Tensor sparseDenseMatMul(poplar::Graph &graph, const SparseTensor &lhs, const poplar::Tensor &rhs, poplar::program::Sequence &prog,
                                 bool transposeLHS = false, bool transposeRHS = false, const poplar::DebugContext &context = {},
                                 const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
} // namespace dynamic
namespace static_ {
namespace detail {
/// Positions of the blocks, in the order of their values.
struct Places {
  std::size_t rows, columns;
  std::array<std::size_t, 2> block;
  std::vector<std::array<std::size_t, 2>> blocks;
};
template <class T> Places placesOf(const CSRMatrix<T> &matrix, std::size_t rows, std::size_t columns) {
  return {rows, columns, matrix.getBlockDimensions(), popsparse::detail::blocksOf(matrix, {rows, columns}, matrix.getBlockDimensions()).at};
}
SparseTensor createSparse(poplar::Graph &graph, const poplar::Type &type, const MatMulParams &params, const Places &places,
                          const poplar::DebugContext &context, const poplar::OptionFlags &options);
poplar::Tensor createDense(poplar::Graph &graph, const poplar::Type &type, const MatMulParams &params, const poplar::DebugContext &context,
                           const poplar::OptionFlags &options);
} // namespace detail

template <class T> SparseTensor createSparseDenseMatMulLHS(poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
                                                           const CSRMatrix<T> &csrLHS, const poplar::DebugContext &context = {},
                                                           const poplar::OptionFlags &options = {}, PlanningCache * = nullptr) {
  return detail::createSparse(graph, inputType, params, detail::placesOf(csrLHS, params.getM(), params.getK()), context, options);
}
/// [groups, k, n]
template <class T> poplar::Tensor createSparseDenseMatMulRHS(poplar::Graph &graph, const poplar::Type &inputType,
                                                             const MatMulParams &params, const CSRMatrix<T> &,
                                                             const poplar::DebugContext &context = {},
                                                             const poplar::OptionFlags options = {}, PlanningCache * = nullptr) {
  return detail::createDense(graph, inputType, params, context, options);
}
template <class T> SparseTensor createDenseSparseMatMulRHS(poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
                                                           const CSRMatrix<T> &csrRHS, const poplar::DebugContext &context = {},
                                                           const poplar::OptionFlags &options = {}, PlanningCache * = nullptr) {
  return detail::createSparse(graph, inputType, params, detail::placesOf(csrRHS, params.getK(), params.getM()), context, options);
}
/// [groups, n, k]
template <class T> poplar::Tensor createDenseSparseMatMulLHS(poplar::Graph &graph, const poplar::Type &inputType,
                                                             const MatMulParams &params, const CSRMatrix<T> &,
                                                             const poplar::DebugContext &context = {},
                                                             const poplar::OptionFlags options = {}, PlanningCache * = nullptr) {
  return detail::createDense(graph, inputType, params, context, options);
}
/// [groups, m, n]
poplar::Tensor sparseDenseMatMul(poplar::Graph &graph, const SparseTensor &lhs, const poplar::Tensor &rhs, poplar::program::Sequence &prog,
                                 bool transposeLHS = false, bool transposeRHS = false, const poplar::DebugContext &context = {},
                                 const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// [groups, n, m]
poplar::Tensor denseSparseMatMul(poplar::Graph &graph, const poplar::Tensor &lhs, const SparseTensor &rhs, poplar::program::Sequence &prog,
                                 bool transposeLHS = false, bool transposeRHS = false, const poplar::DebugContext &context = {},
                                 const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
} // namespace static_
} // namespace popsparse
#endif
