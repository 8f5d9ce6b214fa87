// poplin: QR and LU factorisations, one column in each round of a loop.
#include <poplin/experimental/LuFactorization.hpp>
#include <poplin/experimental/QRFactorization.hpp>

#include <algorithm>
#include <numeric>

#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Loop.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace poplin {
namespace experimental {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

/// 0, 1, … n - 1 in the given shape.
Tensor counting(Graph &graph, std::size_t n, const std::vector<std::size_t> &shape, const std::string &name) {
  std::vector<unsigned> values(n);
  std::iota(values.begin(), values.end(), 0u);
  const Tensor t = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, shape, values, name + "/counting");
  poputil::mapTensorLinearly(graph, t);
  return t;
}

void begin(Graph &graph, const Tensor &a, const std::string &name) {
  requireLibrary(graph, "poplin");
  addLibrary(graph, "popops");
  if (a.rank() != 2 || a.numElements() == 0 || !isReal(a.elementType()))
    throw poputil::poplibs_error(name + ": a matrix of type " + a.elementType().toString() + " and shape " + a.shapeToString());
}

/// The matrices of a factorisation in progress, and the numbers of their rows and columns.
struct Factors {
  Graph &graph;
  Tensor a, rows, columns;
  std::string name;

  Factors(Graph &g, const Tensor &matrix, const std::string &n)
      : graph(g), a(matrix), rows(counting(g, matrix.dim(0), {matrix.dim(0), 1}, n)),
        columns(counting(g, matrix.dim(1), {1, matrix.dim(1)}, n)), name(n) {}

  Tensor map(const Any &expression, const std::vector<Tensor> &tensors, Sequence &prog) const {
    return popops::map(graph, expression, tensors, prog, name);
  }
  void mapInPlace(const Any &expression, const std::vector<Tensor> &tensors, Sequence &prog) const {
    popops::mapInPlace(graph, expression, tensors, prog, name);
  }
  Tensor sum(const Tensor &t, std::size_t dim, popops::Operation op, Sequence &prog) const {
    return popops::reduce(graph, t, {dim}, popops::ReduceParams(op), prog, name);
  }
  Tensor at(const Tensor &t, const Tensor &index, std::size_t dim, Sequence &prog) const {
    return popops::dynamicSlice(graph, t, index, {dim}, {1}, prog, name);
  }
  void clearBelowDiagonal(Sequence &prog) const { mapInPlace(Select(Const(0.f), _1, Gt(_2, _3)), {a, rows, columns}, prog); }
};

/// Householder's reflection that makes column k of R zero below the diagonal: R = H R, Q = Q H with H = 1 - beta v v^T.
void reflect(const Factors &f, const Tensor &q, const Tensor &k, Sequence &prog) {
  const Tensor below = f.map(Select(_1, Const(0.f), Gte(_2, _3)), {f.at(f.a, k, 1, prog), f.rows, k}, prog);
  const Tensor square = f.sum(below, 0, popops::Operation::SQUARE_ADD, prog);
  const Tensor pivot = f.at(below, k, 0, prog).reshape({1});
  // The sign avoids a difference of nearly equal numbers.
  const Tensor alpha = f.map(Select(Sqrt(_2), Neg(Sqrt(_2)), Lt(_1, Const(0.f))), {pivot, square}, prog);
  const Tensor v = f.map(Sub(_1, Select(_4, Const(0.f), Equal(_2, _3))), {below, f.rows, k, alpha}, prog);
  const Any half = Sub(_1, Mul(_2, _3));
  const Tensor beta = f.map(Select(Divide(Const(1.f), half), Const(0.f), Gt(half, Const(0.f))), {square, alpha, pivot}, prog);
  const Any update = Sub(_1, Mul(Mul(_2, _3), _4));
  const Tensor left = f.sum(f.map(Mul(_1, _2), {f.a, v}, prog), 0, popops::Operation::ADD, prog).expand({0});
  f.mapInPlace(update, {f.a, v, left, beta}, prog);
  const Tensor right = f.sum(f.map(Mul(_1, _2), {q, v.transpose()}, prog), 1, popops::Operation::ADD, prog).expand({1});
  f.mapInPlace(update, {q, right, v.transpose(), beta}, prog);
}

} // namespace

std::array<Tensor, 2> createQRFactorizationMatrices(Graph &graph, const Type &type, std::size_t m, std::size_t n, const DebugContext &context) {
  const std::string name = contextName(context, "QR");
  if (m < n)
    throw poputil::poplibs_error(name + ": a matrix of " + std::to_string(m) + " rows and " + std::to_string(n) +
                                 " columns; it needs at least as many rows as columns");
  std::array<Tensor, 2> made{graph.addVariable(type, {m, n}, name + "/A"), graph.addVariable(type, {m, m}, name + "/Q")};
  for (const Tensor &t : made)
    poputil::mapTensorLinearly(graph, t);
  return made;
}

void QRFactorization(Graph &graph, Tensor &A, Tensor &Q, Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "QR");
  begin(graph, A, name);
  for (const auto &option : options)
    if (option.first != "rowsPerIteration")
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
  const std::size_t m = A.dim(0), n = A.dim(1);
  if (m < n || Q.shape() != std::vector<std::size_t>{m, m} || Q.elementType() != A.elementType())
    throw poputil::poplibs_error(name + ": A of shape " + A.shapeToString() + " and Q of shape " + Q.shapeToString() +
                                 "; A needs at least as many rows as columns, and Q is square with as many rows and of the same type");
  const bool single = A.elementType() == poplar::FLOAT;
  const Factors f(graph, single ? A : popops::cast(graph, A, poplar::FLOAT, prog, name), name);
  const Tensor q = single ? Q : popops::cast(graph, Q, poplar::FLOAT, prog, name);
  if (m > 1)
    prog.add(popops::countedLoop(
        graph, std::min(n, m - 1),
        [&](const Tensor &k) {
          Sequence round;
          reflect(f, q, k, round);
          return round;
        },
        name));
  f.clearBelowDiagonal(prog);
  if (!single) {
    prog.add(popops::cast(graph, f.a, A, name));
    prog.add(popops::cast(graph, q, Q, name));
  }
}

std::pair<Tensor, Tensor> LUFactorization(Graph &graph, Tensor &input, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "LU");
  begin(graph, input, name);
  const std::size_t m = input.dim(0), n = input.dim(1);
  const Factors f(graph,
                  input.elementType() == poplar::FLOAT ? duplicate(graph, input, prog, name + "/U")
                                                       : popops::cast(graph, input, poplar::FLOAT, prog, name + "/U"),
                  name);
  const Tensor lower = graph.addVariable(poplar::FLOAT, {m, m}, name + "/L"), across = counting(graph, m, {1, m}, name);
  poputil::mapTensorLinearly(graph, lower);
  popops::mapWithOutput(graph, Cast(Equal(_1, _2), poplar::FLOAT), {f.rows, across}, lower, prog, name);
  if (m > 1)
    prog.add(popops::countedLoop(
        graph, std::min(n, m - 1),
        [&](const Tensor &k) {
          Sequence round;
          const Tensor row = f.at(f.a, k, 0, round), column = f.at(f.a, k, 1, round), pivot = f.at(row, k, 1, round);
          const Tensor factors = f.map(Select(Divide(_1, _2), Const(0.f), Gt(_3, _4)), {column, pivot, f.rows, k}, round);
          f.mapInPlace(Sub(_1, Mul(_2, _3)), {f.a, factors, row}, round);
          f.mapInPlace(Select(_2, _1, And(Equal(_3, _5), Gt(_4, _5))), {lower, factors, across, f.rows, k}, round);
          return round;
        },
        name));
  f.clearBelowDiagonal(prog);
  return {lower, f.a};
}

} // namespace experimental
} // namespace poplin
