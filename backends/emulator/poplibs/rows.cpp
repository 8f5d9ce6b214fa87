// popops: TopK and Sort; popnn: argMax, argMin.
#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <popnn/Loss.hpp>
#include <popops/Sort.hpp>
#include <popops/TopK.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace poplibs {

using poplar::core::Direction;

namespace {

struct Sorting {
  Type type;
  bool descending;
};
template <class Archive> void describe(Archive &a, Sorting &s) { a(s.type)(s.descending); }

template <class T> void sortRow(const State &state, bool descending) {
  const Slot &values = state.slots[0], &indices = state.slots[1], &in = state.slots[2];
  std::vector<std::uint32_t> order(in.count);
  std::iota(order.begin(), order.end(), 0u);
  const T *x = in.as<T>();
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return descending ? x[a] > x[b] : x[a] < x[b]; });
  for (std::uint32_t i = 0; i < values.count; ++i) {
    values.as<T>()[i] = x[order[i]];
    indices.as<std::uint32_t>()[i] = order[i];
  }
}

void runSort(const State &state) {
  const Sorting &s = *static_cast<const Sorting *>(state.shared);
  if (s.type == poplar::FLOAT)
    sortRow<float>(state, s.descending);
  else if (s.type == poplar::HALF)
    sortRow<half>(state, s.descending);
  else if (s.type == poplar::INT)
    sortRow<std::int32_t>(state, s.descending);
  else
    sortRow<std::uint32_t>(state, s.descending);
}

struct Permuting {
  Type type;
};
template <class Archive> void describe(Archive &a, Permuting &p) { a(p.type); }

void runPermute(const State &state) {
  const std::size_t bytes = static_cast<const Permuting *>(state.shared)->type.size();
  const Slot &out = state.slots[0], &places = state.slots[1], &in = state.slots[2];
  for (std::uint32_t i = 0; i < out.count; ++i)
    std::memcpy(out.data + i * bytes, in.data + places.as<std::uint32_t>()[i] * bytes, bytes);
}

} // namespace

const BuiltinKind sortKind{"popops.sort", &runSort, &readShared<Sorting>};

const BuiltinKind permuteKind{"popops.permute", &runPermute, &readShared<Permuting>};

Tensor permuteRows(Graph &graph, const Tensor &in, const Tensor &places, poplar::program::Sequence &prog, const std::string &name) {
  const Type type = in.elementType();
  const std::string vertex = std::string("popops::PermuteRow<") + type.toString() + ">";
  builtinType(graph, vertex, {{"out", Direction::Output, type}, {"places", Direction::Input, poplar::UNSIGNED_INT}, {"in", Direction::Input, type}},
              permuteKind, Permuting{type}, 100);
  const Tensor out = rowsOverTiles(graph, type, in.dim(0), places.dim(1), name + "/permuted");
  const poplar::ComputeSet computeSet = graph.addComputeSet(name + "/permute");
  for (std::size_t row = 0; row < in.dim(0); ++row) {
    const poplar::VertexRef v = graph.addVertex(computeSet, vertex, {{"out", out[row]}, {"places", places[row]}, {"in", in[row]}});
    graph.setTileMapping(v, unsigned(row % graph.getTarget().getNumTiles()));
    graph.setPerfEstimate(v, 40 + 6 * places.dim(1));
  }
  prog.add(poplar::program::Execute(computeSet));
  return out;
}

Tensor rowsOverTiles(Graph &graph, const Type &type, std::size_t rows, std::size_t k, const std::string &name) {
  const Tensor t = graph.addVariable(type, {rows, k}, name);
  for (std::size_t row = 0; row < rows; ++row)
    graph.setTileMapping(t[row], unsigned(row % graph.getTarget().getNumTiles()));
  return t;
}

void sortRows(Graph &graph, const Tensor &in, const Tensor &values, const Tensor &indices, bool descending, poplar::program::Sequence &prog,
              const std::string &name) {
  const Type type = in.elementType();
  if (type != poplar::FLOAT && type != poplar::HALF && type != poplar::INT && type != poplar::UNSIGNED_INT)
    throw poputil::poplibs_error(name + ": elements of type " + type.toString() + " cannot be ordered");
  const std::string vertex = std::string("popops::SortRow<") + type.toString() + (descending ? ",descending>" : ",ascending>");
  builtinType(graph, vertex,
              {{"values", Direction::Output, type}, {"indices", Direction::Output, poplar::UNSIGNED_INT}, {"in", Direction::Input, type}},
              sortKind, Sorting{type, descending}, 500);
  const poplar::ComputeSet computeSet = graph.addComputeSet(name);
  const double n = double(in.dim(1));
  for (std::size_t row = 0; row < in.dim(0); ++row) {
    const poplar::VertexRef v = graph.addVertex(computeSet, vertex);
    graph.connect(v["values"], values[row]);
    graph.connect(v["indices"], indices[row]);
    graph.connect(v["in"], in[row]);
    graph.setTileMapping(v, unsigned(row % graph.getTarget().getNumTiles()));
    graph.setPerfEstimate(v, std::uint64_t(60 + 20 * n * std::log2(n + 2)));
  }
  prog.add(poplar::program::Execute(computeSet));
}

} // namespace poplibs

namespace popops {

using namespace poplibs;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

/// The last dimension as rows.
Tensor asRows(const Tensor &t) { return t.reshape({t.numElements() / std::max<std::size_t>(1, t.dim(t.rank() - 1)), t.dim(t.rank() - 1)}); }

} // namespace

Tensor createTopKInput(Graph &graph, const Type &type, const std::vector<std::size_t> &shape, const DebugContext &context) {
  const Tensor t = graph.addVariable(type, shape, contextName(context, "topKInput"));
  poputil::mapTensorLinearly(graph, t);
  return t;
}

std::pair<Tensor, Tensor> topKWithPermutation(Graph &graph, Sequence &prog, const Tensor &t, const TopKParams &params,
                                              const DebugContext &context, const OptionFlags &) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "topK");
  if (t.rank() == 0 || params.k > t.dim(t.rank() - 1))
    throw poputil::poplibs_error(name + ": " + std::to_string(params.k) + " elements of a tensor of shape " + t.shapeToString());
  const Tensor rows = asRows(t);
  Tensor values = rowsOverTiles(graph, t.elementType(), rows.dim(0), params.k, name + "/values");
  Tensor indices = rowsOverTiles(graph, poplar::UNSIGNED_INT, rows.dim(0), params.k, name + "/indices");
  sortRows(graph, rows, values, indices, params.largest, prog, name);
  std::vector<std::size_t> shape = t.shape();
  shape.back() = params.k;
  const bool turn = params.largest ? params.sortOrder == SortOrder::ASCENDING : params.sortOrder == SortOrder::DESCENDING;
  if (turn) {
    values = values.reverse(1);
    indices = indices.reverse(1);
  }
  return {values.reshape(shape), indices.reshape(shape)};
}

Tensor topK(Graph &graph, Sequence &prog, const Tensor &t, const TopKParams &params, const DebugContext &context, const OptionFlags &options) {
  return topKWithPermutation(graph, prog, t, params, context, options).first;
}

Tensor sort(Graph &graph, const Tensor &t, unsigned dim, Sequence &prog, const DebugContext &context) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "sort");
  if (dim >= t.rank())
    throw poputil::poplibs_error(name + ": dimension " + std::to_string(dim) + " of a tensor of shape " + t.shapeToString());
  const Tensor last = t.dimRoll(dim, t.rank() - 1), rows = asRows(last);
  const Tensor values = rowsOverTiles(graph, t.elementType(), rows.dim(0), rows.dim(1), name + "/values");
  const Tensor indices = rowsOverTiles(graph, poplar::UNSIGNED_INT, rows.dim(0), rows.dim(1), name + "/indices");
  sortRows(graph, rows, values, indices, false, prog, name);
  return values.reshape(last.shape()).dimRoll(t.rank() - 1, dim);
}

namespace {

using Pair = std::pair<Tensor, Tensor>;

void requireSameShape(const std::string &name, const Tensor &keys, const Tensor &values) {
  if (keys.shape() != values.shape())
    throw poputil::poplibs_error(name + ": keys of shape " + keys.shapeToString() + " for values of shape " + values.shapeToString());
}

/// Keys and values along a dimension, in ascending order of the keys.
Pair sortedPair(Graph &graph, const Tensor &k, const Tensor &v, unsigned dim, Sequence &prog, const std::string &name) {
  requireLibrary(graph, "popops");
  requireSameShape(name, k, v);
  if (dim >= k.rank())
    throw poputil::poplibs_error(name + ": dimension " + std::to_string(dim) + " of a tensor of shape " + k.shapeToString());
  const Tensor last = k.dimRoll(dim, k.rank() - 1), rows = asRows(last);
  const Tensor keys = rowsOverTiles(graph, k.elementType(), rows.dim(0), rows.dim(1), name + "/keys");
  const Tensor places = rowsOverTiles(graph, poplar::UNSIGNED_INT, rows.dim(0), rows.dim(1), name + "/places");
  sortRows(graph, rows, keys, places, false, prog, name);
  const Tensor values = permuteRows(graph, asRows(v.dimRoll(dim, v.rank() - 1)), places, prog, name);
  const auto back = [&](const Tensor &t) { return t.reshape(last.shape()).dimRoll(k.rank() - 1, dim); };
  return {back(keys), back(values)};
}

} // namespace

Pair topKKeyValue(Graph &graph, Sequence &prog, const Tensor &keys, const Tensor &values, const TopKParams &params, const DebugContext &context,
                  const OptionFlags &options) {
  const std::string name = contextName(context, "topK");
  requireSameShape(name, keys, values);
  const Pair found = topKWithPermutation(graph, prog, keys, params, context, options);
  const Tensor chosen = permuteRows(graph, asRows(values), asRows(found.second), prog, name);
  return {found.first, chosen.reshape(found.first.shape())};
}

Tensor sortKeyValue(Graph &graph, const Tensor &k, const Tensor &v, unsigned dim, Sequence &prog, const DebugContext &context) {
  return sortedPair(graph, k, v, dim, prog, contextName(context, "sort")).second;
}

void sortKeyValueInPlace(Graph &graph, const Tensor &k, const Tensor &v, unsigned dim, Sequence &prog, const DebugContext &context) {
  const Pair sorted = sortedPair(graph, k, v, dim, prog, contextName(context, "sort"));
  prog.add(Copy(sorted.first, k, false, context));
  prog.add(Copy(sorted.second, v, false, context));
}

void sortInPlace(Graph &graph, const Tensor &t, unsigned dim, Sequence &prog, const DebugContext &context) {
  prog.add(Copy(sort(graph, t, dim, prog, context), t, false, context));
}

} // namespace popops

namespace popnn {

using poplar::Graph;
using poplar::Tensor;

namespace {

using Pair = std::pair<Tensor, Tensor>;

/// The k largest (smallest) elements of each row, and their indices.
Pair firstOf(Graph &graph, const Tensor &input, std::size_t k, bool greatest, poplar::program::Sequence &prog, const std::string &name) {
  poplibs::requireLibrary(graph, "popnn");
  if (input.rank() != 2 || k > input.dim(1))
    throw poputil::poplibs_error(name + ": " + std::to_string(k) + " elements of each row of a tensor of shape " + input.shapeToString());
  const Tensor values = poplibs::rowsOverTiles(graph, input.elementType(), input.dim(0), k, name + "/values");
  const Tensor indices = poplibs::rowsOverTiles(graph, poplar::UNSIGNED_INT, input.dim(0), k, name + "/indices");
  poplibs::sortRows(graph, input, values, indices, greatest, prog, name);
  return {values, indices};
}

Pair first(Graph &graph, const Tensor &input, bool greatest, poplar::program::Sequence &prog, const poplar::DebugContext &context) {
  const Pair found = firstOf(graph, input, 1, greatest, prog, poplibs::contextName(context, greatest ? "argMax" : "argMin"));
  return {found.first.squeeze({1}), found.second.squeeze({1})};
}

} // namespace

Tensor argMax(Graph &graph, const Tensor &input, poplar::program::Sequence &prog, const poplar::DebugContext &context) {
  return first(graph, input, true, prog, context).second;
}

Tensor argMin(Graph &graph, const Tensor &input, poplar::program::Sequence &prog, const poplar::DebugContext &context) {
  return first(graph, input, false, prog, context).second;
}

Pair maxAndArgMax(Graph &graph, const Tensor &input, poplar::program::Sequence &prog, const poplar::DebugContext &context) {
  return first(graph, input, true, prog, context);
}

Pair minAndArgMin(Graph &graph, const Tensor &input, poplar::program::Sequence &prog, const poplar::DebugContext &context) {
  return first(graph, input, false, prog, context);
}

Tensor topK(Graph &graph, const Tensor &input, Tensor &indices, unsigned K, bool, poplar::program::Sequence &prog,
            const poplar::DebugContext &context) {
  const Pair found = firstOf(graph, input, K, true, prog, poplibs::contextName(context, "topK"));
  indices = found.second;
  return found.first;
}

} // namespace popnn
