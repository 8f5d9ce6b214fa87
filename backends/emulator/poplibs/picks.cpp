// popops: scalars of rows, NaN, transposes of the last two dimensions.
#include <popops/NaN.hpp>
#include <popops/Rearrange.hpp>
#include <popops/Reduce.hpp>
#include <popops/SelectScalarFromRows.hpp>
#include <popops/UpdateScalarInRows.hpp>

#include <numeric>

#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"

namespace popops {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::program::Sequence;

namespace {

/// Operands _2 and _3, which are equal if an element of `params` is the selected one of its row.
std::vector<Tensor> rowOperands(Graph &graph, const Tensor &params, const Tensor &indices, const std::string &name) {
  requireLibrary(graph, "popops");
  if (params.rank() != 2 || indices.numElements() != params.dim(0))
    throw poputil::poplibs_error(name + ": " + std::to_string(indices.numElements()) + " indices for the rows of a tensor of shape " +
                                 params.shapeToString());
  if (indices.elementType() != poplar::UNSIGNED_INT && indices.elementType() != poplar::INT)
    throw poputil::poplibs_error(name + ": indices of type " + indices.elementType().toString() + ", not unsigned int or int");
  std::vector<unsigned> columns(params.dim(1));
  std::iota(columns.begin(), columns.end(), 0u);
  const Tensor numbers = graph.addConstant<unsigned>(indices.elementType(), {1, columns.size()}, columns, name + "/columns");
  poputil::mapTensorLinearly(graph, numbers);
  return {params, broadcastTo(indices.flatten().expand({1}), params.shape()), broadcastTo(numbers, params.shape())};
}

Tensor anyOf(Graph &graph, const Any &found, const Tensor &src, Sequence &prog, const std::string &name) {
  requireLibrary(graph, "popops");
  if (src.elementType() != poplar::FLOAT && src.elementType() != poplar::HALF)
    throw poputil::poplibs_error(name + ": elements of type " + src.elementType().toString() + " are never NaN");
  const Tensor flat = src.flatten(), each = outputLike(graph, poplar::BOOL, flat.shape(), {flat}, name + "/each");
  mapTo(graph, found, {flat}, each, prog, name);
  return reduce(graph, each, {0}, ReduceParams(Operation::LOGICAL_OR), prog, name);
}

} // namespace

Tensor selectScalarFromRows(Graph &graph, const Tensor &params, const Tensor &indices, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "selectScalarFromRows");
  const std::vector<Tensor> tensors = rowOperands(graph, params, indices, name);
  const Tensor chosen = outputLike(graph, params.elementType(), params.shape(), {params}, name + "/chosen");
  mapTo(graph, Select(_1, Cast(Const(0), params.elementType()), Equal(_2, _3)), tensors, chosen, prog, name);
  return reduce(graph, chosen, {1}, ReduceParams(Operation::ADD), prog, name);
}

void updateScalarInRows(Graph &graph, const Tensor &params, const Tensor &indices, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "updateScalarInRows");
  mapTo(graph, Sub(_1, Cast(Equal(_2, _3), params.elementType())), rowOperands(graph, params, indices, name), params, prog, name);
}

Tensor hasNaN(Graph &graph, const Tensor &src, Sequence &prog, const DebugContext &context) {
  return anyOf(graph, NotEqual(_1, _1), src, prog, contextName(context, "hasNaN"));
}

Tensor hasNaNOrInf(Graph &graph, const Tensor &src, Sequence &prog, const DebugContext &context) {
  return anyOf(graph, Not(IsFinite(_1)), src, prog, contextName(context, "hasNaNOrInf"));
}

namespace rearrange {

Tensor partialTranspose(Graph &graph, const Tensor &in, const poplar::ComputeSet &computeSet, const DebugContext &context) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "partialTranspose");
  if (in.rank() < 2)
    throw poputil::poplibs_error(name + ": a tensor of shape " + in.shapeToString() + " has no two dimensions");
  const Tensor turned = in.dimRoll(in.rank() - 1, in.rank() - 2);
  const Tensor out = outputLike(graph, in.elementType(), turned.shape(), {turned}, name + "/out");
  addElementWork(graph, computeSet, _1, {turned}, out, name);
  return out;
}

Tensor partialTranspose(Graph &graph, const Tensor &in, Sequence &prog, const DebugContext &context) {
  const poplar::ComputeSet computeSet = graph.addComputeSet(contextName(context, "partialTranspose"));
  prog.add(poplar::program::Execute(computeSet));
  return partialTranspose(graph, in, computeSet, context);
}

} // namespace rearrange

} // namespace popops
