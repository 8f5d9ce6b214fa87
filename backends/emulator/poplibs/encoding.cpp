// popops: encodings, padding, allTrue; poputil: broadcasts and regions.
#include <popops/AllTrue.hpp>
#include <popops/ElementWiseUtil.hpp>
#include <popops/Encoding.hpp>
#include <popops/Pad.hpp>
#include <popops/Reduce.hpp>
#include <functional>
#include <numeric>

#include <poputil/Broadcast.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>

#include "elementwise.hpp"

namespace popops {

using namespace poplibs;
using poplar::DebugContext;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

/// start, start + 1, … of a type.
Tensor counting(Graph &graph, const Type &type, std::size_t n, std::int64_t start, const std::string &name) {
  std::vector<std::int64_t> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = start + std::int64_t(i);
  const Tensor constant = graph.addConstant<std::int64_t>(type, {n}, values, name);
  poputil::mapTensorLinearly(graph, constant);
  return constant;
}

void count(Graph &graph, const Tensor &t, std::int64_t start, Sequence &prog, const DebugContext &context) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "iota");
  prog.add(Copy(counting(graph, t.elementType(), t.numElements(), start, name), t.flatten(), false, context));
}

/// indices[i] == j, for [rows, classes].
std::vector<Tensor> operands(Graph &graph, const Tensor &indices, const Tensor &encoded, const std::string &name) {
  requireLibrary(graph, "popops");
  if (encoded.rank() != 2 || indices.numElements() != encoded.dim(0))
    throw poputil::poplibs_error(name + ": " + std::to_string(indices.numElements()) + " indices for an encoding of shape " + encoded.shapeToString());
  const Tensor classes = counting(graph, indices.elementType(), encoded.dim(1), 0, name + "/classes");
  return {broadcastTo(indices.flatten().expand({1}), encoded.shape()), broadcastTo(classes.expand({0}), encoded.shape())};
}

} // namespace

void iota(Graph &graph, const Tensor &t, unsigned start, Sequence &prog, const DebugContext &context) { count(graph, t, start, prog, context); }
void iota(Graph &graph, const Tensor &t, int start, Sequence &prog, const DebugContext &context) { count(graph, t, start, prog, context); }

void encodeOneHot(Graph &graph, const Tensor &indices, const Tensor &encoded, Sequence &prog, const DebugContext &context) {
  using namespace expr;
  const std::string name = contextName(context, "encodeOneHot");
  mapTo(graph, Cast(Equal(_1, _2), encoded.elementType()), operands(graph, indices, encoded, name), encoded, prog, name);
}

void encodeOneHot(Graph &graph, const Tensor &indices, const Tensor &encoded, Sequence &prog, const Tensor &on, const Tensor &off,
                  const DebugContext &context) {
  using namespace expr;
  const std::string name = contextName(context, "encodeOneHot");
  std::vector<Tensor> tensors = operands(graph, indices, encoded, name);
  tensors.push_back(on);
  tensors.push_back(off);
  mapTo(graph, Select(_3, _4, Equal(_1, _2)), tensors, encoded, prog, name);
}

namespace {

/// The tiles of the edge for all new elements beside it.
void mapLikeEdge(Graph &graph, const Tensor &added, const Tensor &edge, unsigned dimension) {
  const Graph::TileToTensorMapping mapping = graph.getTileMapping(edge);
  for (std::size_t i = 0; i < added.dim(dimension); ++i)
    graph.setTileMapping(added.slice(i, i + 1, dimension), mapping);
}

/// `make(shape)` makes the new elements.
template <class F> Tensor padded(const Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, F &&make) {
  Tensor result = t;
  const auto filling = [&](std::ptrdiff_t n) {
    std::vector<std::size_t> shape = t.shape();
    shape.at(dimension) = std::size_t(n);
    return make(shape);
  };
  if (lower < 0)
    result = result.slice(std::size_t(-lower), result.dim(dimension), dimension);
  if (upper < 0)
    result = result.slice(0, result.dim(dimension) - std::size_t(-upper), dimension);
  if (lower > 0)
    result = poplar::concat(filling(lower), result, dimension);
  if (upper > 0)
    result = poplar::concat(result, filling(upper), dimension);
  return result;
}

template <class... Values>
Tensor paddedEverywhere(Graph &graph, const Tensor &t, const std::vector<std::ptrdiff_t> &lower, const std::vector<std::ptrdiff_t> &upper,
                        const Values &...values) {
  if (lower.size() != t.rank() || upper.size() != t.rank())
    throw poputil::poplibs_error("pad: a tensor of shape " + t.shapeToString() + " needs a pair of numbers for each dimension");
  Tensor result = t;
  for (unsigned d = 0; d < t.rank(); ++d)
    result = pad(graph, result, lower[d], upper[d], d, values...);
  return result;
}

} // namespace

Tensor pad(Graph &graph, const Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, float value) {
  return padded(t, lower, upper, dimension, [&](const std::vector<std::size_t> &shape) {
    const Tensor constant = graph.addConstant(t.elementType(), shape, value, "padding");
    poputil::mapTensorLinearly(graph, constant);
    return constant;
  });
}

Tensor pad(Graph &, const Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, const Tensor &value,
           padding::MappingMethod) {
  if (value.numElements() != 1 || value.elementType() != t.elementType())
    throw poputil::poplibs_error("pad: a value of type " + value.elementType().toString() + " and shape " + value.shapeToString() +
                                 "; it needs one element of type " + t.elementType().toString());
  return padded(t, lower, upper, dimension, [&](const std::vector<std::size_t> &shape) {
    const std::size_t n = std::accumulate(shape.begin(), shape.end(), std::size_t(1), std::multiplies<>());
    return value.flatten().broadcast(unsigned(n), 0).reshape(shape);
  });
}

Tensor pad(Graph &graph, const Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, float value,
           padding::MappingMethod method) {
  const auto constant = [&](const std::vector<std::size_t> &shape) {
    const Tensor made = graph.addConstant(t.elementType(), shape, value, "padding");
    if (method == padding::MappingMethod::ZERO)
      graph.setTileMapping(made, 0);
    return made;
  };
  const Tensor result = padded(t, lower, upper, dimension, constant);
  if (method == padding::MappingMethod::EDGE) {
    const std::size_t before = std::size_t(std::max<std::ptrdiff_t>(0, lower)), after = std::size_t(std::max<std::ptrdiff_t>(0, upper));
    const std::size_t n = result.dim(dimension);
    if (before + after == n)
      throw poputil::poplibs_error("pad: a tensor without elements has no edge");
    mapLikeEdge(graph, result.slice(0, before, dimension), result.slice(before, before + 1, dimension), dimension);
    mapLikeEdge(graph, result.slice(n - after, n, dimension), result.slice(n - after - 1, n - after, dimension), dimension);
  }
  return result;
}
Tensor pad(Graph &graph, const Tensor &t, const std::vector<std::ptrdiff_t> &lower, const std::vector<std::ptrdiff_t> &upper, float value,
           padding::MappingMethod method) {
  return paddedEverywhere(graph, t, lower, upper, value, method);
}
Tensor pad(Graph &graph, const Tensor &t, const std::vector<std::ptrdiff_t> &lower, const std::vector<std::ptrdiff_t> &upper, float value) {
  return paddedEverywhere(graph, t, lower, upper, value);
}
Tensor pad(Graph &graph, const Tensor &t, const std::vector<std::ptrdiff_t> &lower, const std::vector<std::ptrdiff_t> &upper,
           const Tensor &value, padding::MappingMethod) {
  return paddedEverywhere(graph, t, lower, upper, value);
}

namespace {

/// Inserts n elements before the first of a dimension, by views of the tensor itself.
Tensor viewsBefore(const Tensor &t, std::size_t n, unsigned dimension, padding::Type type) {
  const std::size_t size = t.dim(dimension);
  if (size == 0 || (type == padding::Type::REFLECT && n >= size))
    throw poputil::poplibs_error("pad: " + std::to_string(n) + " elements before dimension " + std::to_string(dimension) +
                                 " of a tensor of shape " + t.shapeToString());
  if (type == padding::Type::EDGE)
    return t.slice(0, 1, dimension).broadcast(unsigned(n), dimension);
  return t.slice(1, n + 1, dimension).reverse(dimension);
}

} // namespace

Tensor pad(const Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, padding::Type type) {
  Tensor result = t;
  if (lower < 0)
    result = result.slice(std::size_t(-lower), result.dim(dimension), dimension);
  if (upper < 0)
    result = result.slice(0, result.dim(dimension) - std::size_t(-upper), dimension);
  const Tensor inner = result;
  if (lower > 0)
    result = poplar::concat(viewsBefore(inner, std::size_t(lower), dimension, type), result, dimension);
  if (upper > 0)
    result = poplar::concat(result, viewsBefore(inner.reverse(dimension), std::size_t(upper), dimension, type).reverse(dimension), dimension);
  return result;
}

Tensor pad(const Tensor &t, const std::vector<std::ptrdiff_t> &lower, const std::vector<std::ptrdiff_t> &upper, padding::Type type) {
  if (lower.size() != t.rank() || upper.size() != t.rank())
    throw poputil::poplibs_error("pad: a tensor of shape " + t.shapeToString() + " needs a pair of numbers for each dimension");
  Tensor result = t;
  for (unsigned d = 0; d < t.rank(); ++d)
    result = pad(result, lower[d], upper[d], d, type);
  return result;
}

Tensor allTrue(Graph &graph, Tensor A, Sequence &prog, const DebugContext &context) {
  return reduce(graph, A.flatten(), {0}, ReduceParams(Operation::LOGICAL_AND), prog, context);
}

Tensor createOutputForElementWiseOp(Graph &graph, const std::vector<Tensor> &inputs, const Type &outputType, const DebugContext &context) {
  return outputLike(graph, outputType, broadcastShape(inputs), inputs, contextName(context, "out"));
}

} // namespace popops

namespace poputil {

using poplar::Graph;
using poplar::Interval;
using poplar::Tensor;

void expandToMatchRanks(Tensor &a, Tensor &b) {
  while (a.rank() < b.rank())
    a = a.expand({0});
  while (b.rank() < a.rank())
    b = b.expand({0});
}

void broadcastToMatch(Tensor &a, const std::vector<std::size_t> &shape) {
  while (a.rank() < shape.size())
    a = a.expand({0});
  for (unsigned d = 0; d < shape.size(); ++d)
    if (a.dim(d) == 1 && shape[d] != 1)
      a = a.broadcast(unsigned(shape[d]), d);
  if (a.shape() != shape)
    throw poplibs_error("a tensor of shape " + a.shapeToString() + " cannot be broadcast");
}

void broadcastToMatch(Tensor &a, Tensor &b) {
  const std::vector<std::size_t> shape = poplibs::broadcastShape({a, b});
  broadcastToMatch(a, shape);
  broadcastToMatch(b, shape);
}

void broadcastToMatch(Tensor &a, Tensor &b, Tensor &c) {
  const std::vector<std::size_t> shape = poplibs::broadcastShape({a, b, c});
  broadcastToMatch(a, shape);
  broadcastToMatch(b, shape);
  broadcastToMatch(c, shape);
}

bool canBroadcastToMatch(const Tensor &a, const Tensor &b) {
  try {
    poplibs::broadcastShape({a, b});
    return true;
  } catch (const poplibs_error &) {
    return false;
  }
}

Tensor duplicate(Graph &graph, const Tensor &in, poplar::program::Sequence &prog, const poplar::DebugContext &context, poplar::TensorCloneMethod) {
  return poplibs::duplicate(graph, in, prog, poplibs::contextName(context, "duplicate"));
}

} // namespace poputil
