// A matrix as the product of a lower and an upper triangular one.
#ifndef SNNC_POPLIN_EXPERIMENTAL_LU_FACTORIZATION_HPP
#define SNNC_POPLIN_EXPERIMENTAL_LU_FACTORIZATION_HPP
#include <utility>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
namespace poplin {
namespace experimental {
/// FLOAT L ([m, m], ones on the diagonal) and U ([m, n]), without exchanges of rows.
std::pair<poplar::Tensor, poplar::Tensor> LUFactorization(poplar::Graph &graph, poplar::Tensor &input, poplar::program::Sequence &prog,
                                                          const poplar::DebugContext &context = {});
} // namespace experimental
} // namespace poplin
#endif
