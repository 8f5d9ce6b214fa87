// A matrix as the product of an orthogonal and an upper triangular one.
#ifndef SNNC_POPLIN_EXPERIMENTAL_QR_FACTORIZATION_HPP
#define SNNC_POPLIN_EXPERIMENTAL_QR_FACTORIZATION_HPP
#include <array>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
namespace poplin {
namespace experimental {
/// A ([m, n], at least as many rows as columns) and Q ([m, m]).
std::array<poplar::Tensor, 2> createQRFactorizationMatrices(poplar::Graph &graph, const poplar::Type &type, std::size_t m, std::size_t n,
                                                            const poplar::DebugContext &context);
/// A becomes R, and Q, which must be the identity, the orthogonal factor.
void QRFactorization(poplar::Graph &graph, poplar::Tensor &A, poplar::Tensor &Q, poplar::program::Sequence &prog,
                     const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
} // namespace experimental
} // namespace poplin
#endif
