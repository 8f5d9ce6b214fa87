// poplin: grids of coordinates, triangular systems and Cholesky factorisation, column by column.
#include <poplin/Cholesky.hpp>
#include <poplin/MeshGrid.hpp>
#include <poplin/TriangularSolve.hpp>

#include <popops/ElementWise.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace poplin {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

namespace {

Tensor created(Graph &graph, const Type &type, const Shape &shape, const std::string &name) {
  const Tensor t = graph.addVariable(type, shape, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// [batch, n, m]
Tensor batched(const Tensor &t, const std::string &name) {
  if (t.rank() < 2 || !isReal(t.elementType()))
    throw poputil::poplibs_error(name + ": a matrix of type " + t.elementType().toString() + " and shape " + t.shapeToString());
  const std::size_t n = t.dim(t.rank() - 2), m = t.dim(t.rank() - 1);
  return t.reshape({t.numElements() / std::max<std::size_t>(1, n * m), n, m});
}

Tensor square(const Tensor &t, const std::string &name) {
  const Tensor b = batched(t, name);
  if (b.dim(1) != b.dim(2) || b.dim(1) == 0)
    throw poputil::poplibs_error(name + ": the matrix of shape " + t.shapeToString() + " is not square");
  return b;
}

/// Ones on and below (or above) the diagonal, zeros elsewhere: [1, n, n].
Tensor triangle(Graph &graph, const Type &type, std::size_t n, bool lower, bool diagonal, const std::string &name) {
  std::vector<float> values(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      values[i * n + j] = (lower ? j < i : j > i) || (diagonal && i == j) ? 1 : 0;
  const Tensor t = graph.addConstant<float>(type, {1, n, n}, values, name + "/triangle");
  poputil::mapTensorLinearly(graph, t);
  return t;
}

void onlyKnown(const OptionFlags &options, const std::string &name) {
  // Results do not depend on these.
  for (const auto &option : options)
    if (option.first != "blockSize" && option.first != "availableMemoryProportion" && option.first != "partialsType" &&
        option.first != "fullyConnectedPass")
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
}

void addMissingLibraries(Graph &graph) {
  requireLibrary(graph, "poplin");
  addLibrary(graph, "popops");
}

} // namespace

Tensor linspace(Graph &graph, const Type &type, float left, float right, std::size_t count, const DebugContext &context) {
  const std::string name = contextName(context, "linspace");
  if (!isReal(type) || count < 2)
    throw poputil::poplibs_error(name + ": " + std::to_string(count) + " numbers of type " + type.toString());
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = float(double(left) + (double(right) - double(left)) * double(i) / double(count - 1));
  const Tensor t = graph.addConstant<float>(type, {count}, values, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

std::vector<Tensor> meshgrid2d(Graph &, Tensor x, Tensor y) {
  if (x.rank() != 1 || y.rank() != 1)
    throw poputil::poplibs_error("meshgrid2d: coordinates of shapes " + x.shapeToString() + " and " + y.shapeToString() +
                                 "; they are vectors");
  return {x.expand({0}).broadcast(unsigned(y.dim(0)), 0), y.expand({1}).broadcast(unsigned(x.dim(0)), 1)};
}

Tensor createTriangularSolveInputLHS(Graph &graph, const Type &inputType, const Type &, const Shape &aShape, const Shape &, bool,
                                     const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return created(graph, inputType, aShape, contextName(context, "triangular"));
}
Tensor createTriangularSolveInputRHS(Graph &graph, const Type &inputType, const Type &, const Shape &, const Shape &bShape, bool,
                                     const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return created(graph, inputType, bShape, contextName(context, "rightSide"));
}

Tensor triangularMask(Graph &graph, const Tensor &a, bool lower, bool unitDiagonal, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "triangularMask");
  addMissingLibraries(graph);
  const Tensor matrix = square(a, name);
  const std::size_t n = matrix.dim(1);
  const Tensor kept = triangle(graph, a.elementType(), n, lower, !unitDiagonal, name);
  const Any zero = Cast(Const(0.f), a.elementType());
  if (!unitDiagonal)
    return popops::map(graph, Select(_1, zero, Gt(_2, zero)), {matrix, kept}, prog, name).reshape(a.shape());
  std::vector<float> ones(n * n);
  for (std::size_t i = 0; i < n; ++i)
    ones[i * (n + 1)] = 1;
  const Tensor diagonal = graph.addConstant<float>(a.elementType(), {1, n, n}, ones, name + "/diagonal");
  poputil::mapTensorLinearly(graph, diagonal);
  return popops::map(graph, Select(_1, _3, Gt(_2, zero)), {matrix, kept, diagonal}, prog, name).reshape(a.shape());
}

Tensor triangularSolve(Graph &graph, const Tensor &a, const Tensor &b, bool leftSide, bool lower, bool unitDiagonal, Sequence &prog,
                       const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "triangularSolve");
  addMissingLibraries(graph);
  onlyKnown(options, name);
  // X A = B is A^T X^T = B^T.
  const Tensor whole = square(a, name), matrix = leftSide ? whole : whole.dimShuffle({0, 2, 1});
  const Tensor rest = duplicate(graph, b, prog, name + "/Out");
  const Tensor wanted = batched(rest, name), x = leftSide ? wanted : wanted.dimShuffle({0, 2, 1});
  const std::size_t n = matrix.dim(1);
  if (x.dim(0) != matrix.dim(0) || x.dim(1) != n || a.elementType() != b.elementType())
    throw poputil::poplibs_error(name + ": a right side of type " + b.elementType().toString() + " and shape " + b.shapeToString() +
                                 " for a matrix of type " + a.elementType().toString() + " and shape " + a.shapeToString());
  const bool forward = lower == leftSide;
  for (std::size_t step = 0; step < n; ++step) {
    const std::size_t j = forward ? step : n - 1 - step, from = forward ? j + 1 : 0, to = forward ? n : j;
    const Tensor row = x.slice(j, j + 1, 1);
    if (!unitDiagonal)
      popops::mapInPlace(graph, Divide(_1, _2), {row, matrix.slice({0, j, j}, {matrix.dim(0), j + 1, j + 1})}, prog, name + "/divide");
    if (from < to)
      popops::mapInPlace(graph, Sub(_1, Mul(_2, _3)), {x.slice(from, to, 1), matrix.slice({0, from, j}, {matrix.dim(0), to, j + 1}), row},
                         prog, name + "/subtract");
  }
  return rest;
}

Tensor createCholeskyInput(Graph &graph, const Type &type, const Shape &shape, bool, const DebugContext &context, const OptionFlags &,
                           PlanningCache *) {
  return created(graph, type, shape, contextName(context, "choleskyInput"));
}

void choleskyInPlace(Graph &graph, const Tensor &a, bool lower, Sequence &prog, const DebugContext &context, OptionFlags options,
                     PlanningCache *) {
  const std::string name = contextName(context, "cholesky");
  addMissingLibraries(graph);
  onlyKnown(options, name);
  const Tensor whole = square(a, name), m = lower ? whole : whole.dimShuffle({0, 2, 1});
  const std::size_t n = m.dim(1), batch = m.dim(0);
  for (std::size_t j = 0; j < n; ++j) {
    const Tensor pivot = m.slice({0, j, j}, {batch, j + 1, j + 1});
    popops::mapInPlace(graph, Sqrt(_1), {pivot}, prog, name + "/pivot");
    if (j + 1 == n)
      break;
    const Tensor column = m.slice({0, j + 1, j}, {batch, n, j + 1});
    popops::mapInPlace(graph, Divide(_1, _2), {column, pivot}, prog, name + "/column");
    for (std::size_t k = j + 1; k < n; ++k) {
      // Only below the diagonal: the other triangle is not part of the matrix.
      const Tensor below = m.slice({0, k, k}, {batch, n, k + 1});
      popops::mapInPlace(graph, Sub(_1, Mul(_2, _3)), {below, column.slice(k - j - 1, n - j - 1, 1), column.slice(k - j - 1, k - j, 1)},
                         prog, name + "/subtract");
    }
  }
  for (std::size_t j = 1; j < n; ++j)
    popops::zero(graph, m.slice({0, 0, j}, {batch, j, j + 1}), prog, name + "/zero");
}

Tensor cholesky(Graph &graph, const Tensor &a, bool lower, Sequence &prog, const DebugContext &context, OptionFlags options,
                PlanningCache *cache) {
  const Tensor copy = duplicate(graph, a, prog, contextName(context, "cholesky") + "/Out");
  choleskyInPlace(graph, copy, lower, prog, context, options, cache);
  return copy;
}

} // namespace poplin
