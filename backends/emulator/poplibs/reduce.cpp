// popops/Reduce.hpp: partial sums on the tiles of the elements, then the sum for each output on its tile.
#include "reduce.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "../src/halves.hpp"
#include "evaluate.hpp"

namespace poplibs {

using popops::Operation;
using popops::ReduceParams;
using poplar::core::Direction;

namespace {

/// Data shared by the vertices of one tile: the number of elements of each output.
struct RowLengths {
  Operation op;
  Type in, out;
  bool update, scaled;
  std::vector<std::uint32_t> ends;
};
template <class Archive> void describe(Archive &a, RowLengths &r) { a(r.op)(r.in)(r.out)(r.update)(r.scaled)(r.ends); }

double readElement(Type type, const char *at) {
  const auto as = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return double(value);
  };
  switch (type.id()) {
  case poplar::FLOAT.id():
    return as(float());
  case poplar::HALF.id():
    return as(half());
  case poplar::INT.id():
    return as(std::int32_t());
  case poplar::UNSIGNED_INT.id():
    return as(std::uint32_t());
  case poplar::SHORT.id():
    return as(std::int16_t());
  case poplar::UNSIGNED_SHORT.id():
    return as(std::uint16_t());
  case poplar::CHAR.id():
  case poplar::SIGNED_CHAR.id():
    return as(std::int8_t());
  case poplar::LONGLONG.id():
  case poplar::UNSIGNED_LONGLONG.id():
    return as(std::int64_t());
  default:
    return as(std::uint8_t());
  }
}

void writeElement(Type type, char *at, double value) {
  const auto put = [&](auto converted) { std::memcpy(at, &converted, sizeof converted); };
  if (type == poplar::FLOAT)
    put(float(value));
  else if (type == poplar::HALF)
    put(half(float(value)));
  else if (type == poplar::BOOL)
    put(std::uint8_t(value != 0));
  else if (type.size() == 1)
    put(std::uint8_t(std::int64_t(value)));
  else if (type.size() == 2)
    put(std::uint16_t(std::int64_t(value)));
  else if (type.size() == 4)
    put(std::uint32_t(std::int64_t(value)));
  else
    put(std::int64_t(value));
}

double identity(Operation op) {
  const double infinity = std::numeric_limits<double>::infinity();
  return op == Operation::MUL || op == Operation::LOGICAL_AND ? 1
         : op == Operation::MIN                               ? infinity
         : op == Operation::MAX || op == Operation::LOG_ADD   ? -infinity
                                                              : 0;
}

double combine(Operation op, double a, double b) {
  switch (op) {
  case Operation::ADD:
    return a + b;
  case Operation::SQUARE_ADD:
    return a + b * b;
  case Operation::MUL:
    return a * b;
  case Operation::MIN:
    return std::fmin(a, b);
  case Operation::MAX:
    return std::fmax(a, b);
  case Operation::LOGICAL_AND:
    return a != 0 && b != 0;
  case Operation::LOGICAL_OR:
    return a != 0 || b != 0;
  case Operation::LOG_ADD:
    break;
  }
  const double high = std::fmax(a, b);
  return std::isinf(high) ? high : high + std::log(std::exp(a - high) + std::exp(b - high));
}

/// Reduces rows in float, as vertices of an IPU do.
float accumulateReals(const RowLengths &rows, const char *from, std::size_t n) {
  constexpr std::size_t block = 128;
  float buffer[block], value = float(identity(rows.op));
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t size = std::min(block, n - begin);
    const float *x = reinterpret_cast<const float *>(from) + begin;
    if (rows.in == poplar::HALF) {
      poplar::core::widen(from + 2 * begin, buffer, size);
      x = buffer;
    }
    if (rows.op == Operation::ADD)
      value = std::accumulate(x, x + size, value);
    else
      for (std::size_t i = 0; i < size; ++i)
        value = float(combine(rows.op, value, x[i]));
  }
  return value;
}

/// Integers are accumulated exactly.
double accumulate(const RowLengths &rows, const Slot &in, std::uint32_t begin, std::uint32_t end) {
  const std::size_t bytes = rows.in.size();
  if (isReal(rows.in))
    return accumulateReals(rows, in.data + begin * bytes, end - begin);
  double value = identity(rows.op);
  for (std::uint32_t i = begin; i < end; ++i) {
    value = combine(rows.op, value, readElement(rows.in, in.data + i * bytes));
  }
  return value;
}

void runReduce(const State &state) {
  const RowLengths &rows = *static_cast<const RowLengths *>(state.shared);
  const Slot &out = state.slots[0], &in = state.slots[1];
  const double factor = rows.scaled ? double(*state.slots[2].as<float>()) : 1;
  std::uint32_t begin = 0;
  for (std::uint32_t i = 0; i < out.count; ++i) {
    char *const to = out.data + i * rows.out.size();
    double value = accumulate(rows, in, begin, rows.ends[i]) * factor;
    if (rows.update)
      value += readElement(rows.out, to);
    writeElement(rows.out, to, value);
    begin = rows.ends[i];
  }
}

const char *operationName(Operation op) {
  constexpr const char *names[] = {"ADD", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOG_ADD"};
  return names[int(op)];
}

std::string vertexType(Graph &graph, const RowLengths &rows) {
  std::string name = std::string("popops::Reduce<") + operationName(rows.op) + "," + rows.in.toString() + "," + rows.out.toString() +
                     (rows.update ? ",update" : "") + (rows.scaled ? ",scaled" : "") + ">[";
  // Runs of rows with the same length are written once.
  for (std::size_t i = 0; i < rows.ends.size();) {
    const auto length = [&](std::size_t row) { return rows.ends[row] - (row ? rows.ends[row - 1] : 0); };
    std::size_t same = i;
    while (same < rows.ends.size() && length(same) == length(i))
      ++same;
    name += std::to_string(same - i) + "x" + std::to_string(length(i)) + (same < rows.ends.size() ? "," : "");
    i = same;
  }
  name += "]";
  if (hasType(graph, name))
    return name;
  std::vector<FieldSpec> fields{{"out", rows.update ? Direction::InOut : Direction::Output, rows.out}, {"in", Direction::Input, rows.in}};
  if (rows.scaled)
    fields.push_back({"scale", Direction::Input, poplar::FLOAT});
  builtinType(graph, name, fields, reduceKind, rows, 400);
  return name;
}

/// Tile cycles: rows are distributed among the workers, a long row is split among them.
std::uint64_t reduceCycles(const Graph &graph, const RowLengths &rows) {
  const std::size_t width = rows.in == poplar::HALF ? 4 : rows.in == poplar::FLOAT ? 2 : 1;
  const std::size_t workers = graph.getTarget().getNumWorkerContexts();
  std::size_t total = 0, begin = 0;
  for (std::uint32_t end : rows.ends) {
    total += 5 + (end - begin + width - 1) / width;
    begin = end;
  }
  return sharedCycles(graph, 29 + (total + workers - 1) / workers);
}

/// The part of a reduction on one tile: outputs, and where the elements of each end among those that the tile reduces.
struct Part {
  unsigned tile;
  std::vector<std::size_t> outputs;
  std::vector<std::uint32_t> ends;
};

/// A part with elements that are on its tile.
struct LocalPart : Part {
  std::vector<poplar::Interval> intervals;
};

/// A part with elements from any tile.
struct GatheredPart : Part {
  Tensor elements;
};

void addVertex(Graph &graph, poplar::ComputeSet computeSet, const RowLengths &rows, const Part &part, const Tensor &elements, const Tensor &out,
               const Tensor &scale) {
  const poplar::VertexRef v = graph.addVertex(computeSet, vertexType(graph, rows));
  graph.connect(v["out"], out);
  graph.connect(v["in"], elements);
  if (rows.scaled)
    graph.connect(v["scale"], scale.reshape({1}));
  graph.setTileMapping(v, part.tile);
  graph.setPerfEstimate(v, reduceCycles(graph, rows));
}

/// The elements of every output on each tile that contains elements of `in` ([outputs, n]).
std::vector<LocalPart> partsByInput(const Graph &graph, const Tensor &in, const std::string &name) {
  std::vector<LocalPart> parts;
  const std::size_t n = in.dim(1);
  for (const TileWork &work : workOf(graph, in.flatten(), name)) {
    LocalPart part{{work.tile, {}, {}}, work.intervals};
    std::uint32_t at = 0;
    for (const poplar::Interval &i : work.intervals)
      for (std::size_t begin = i.begin(); begin < i.end();) {
        const std::size_t row = begin / n, end = std::min(i.end(), (row + 1) * n);
        at += std::uint32_t(end - begin);
        if (!part.outputs.empty() && part.outputs.back() == row) {
          part.ends.back() = at;
        } else {
          part.outputs.push_back(row);
          part.ends.push_back(at);
        }
        begin = end;
      }
    parts.push_back(std::move(part));
  }
  return parts;
}

/// All elements for the outputs of each tile that contains outputs. `gather(rows, part, elements)` adds those of an interval of outputs.
template <class F> std::vector<GatheredPart> partsByOutput(const Graph &graph, const Tensor &out, const std::string &name, F &&gather) {
  std::vector<GatheredPart> parts;
  for (const TileWork &work : workOf(graph, out, name)) {
    GatheredPart part{{work.tile, {}, {}}, {}};
    std::vector<Tensor> elements;
    for (const poplar::Interval &rows : work.intervals) {
      gather(rows, part, elements);
      for (std::size_t row = rows.begin(); row < rows.end(); ++row)
        part.outputs.push_back(row);
    }
    part.elements = poplar::concat(elements);
    parts.push_back(std::move(part));
  }
  return parts;
}

std::uint32_t endOf(const Part &part) { return part.ends.empty() ? 0 : part.ends.back(); }

/// The rows of `in` themselves.
std::vector<GatheredPart> wholeRows(const Graph &graph, const Tensor &in, const Tensor &out, const std::string &name) {
  return partsByOutput(graph, out, name, [&](const poplar::Interval &rows, Part &part, std::vector<Tensor> &elements) {
    elements.push_back(in.slice(rows).flatten());
    for (std::size_t row = rows.begin(); row < rows.end(); ++row)
      part.ends.push_back(endOf(part) + std::uint32_t(in.dim(1)));
  });
}

/// The partial results of each row.
std::vector<GatheredPart> partialRows(const Graph &graph, const std::vector<std::vector<Tensor>> &pieces, const Tensor &out, const std::string &name) {
  return partsByOutput(graph, out, name, [&](const poplar::Interval &rows, Part &part, std::vector<Tensor> &elements) {
    for (std::size_t row = rows.begin(); row < rows.end(); ++row) {
      elements.insert(elements.end(), pieces[row].begin(), pieces[row].end());
      part.ends.push_back(endOf(part) + std::uint32_t(pieces[row].size()));
    }
  });
}

poplar::ComputeSet computeSetAt(Graph &graph, std::vector<poplar::ComputeSet> &computeSets, std::size_t index, const std::string &name) {
  while (computeSets.size() <= index)
    computeSets.push_back(graph.addComputeSet(name + "/ReduceStage" + std::to_string(computeSets.size())));
  return computeSets[index];
}

/// Partial results are stored in float if elements are half; bits stay unchanged.
Type partialType(Type in) { return in == poplar::HALF ? poplar::FLOAT : in; }

Operation later(Operation op) { return op == Operation::SQUARE_ADD ? Operation::ADD : op; }

Tensor picked(const Tensor &flat, const std::vector<std::size_t> &indices) {
  std::vector<poplar::Interval> intervals;
  for (std::size_t i : indices)
    if (!intervals.empty() && intervals.back().end() == i)
      intervals.back() = poplar::Interval(intervals.back().begin(), i + 1);
    else
      intervals.emplace_back(i, i + 1);
  return pick(flat, intervals);
}

} // namespace

const BuiltinKind reduceKind{"popops.reduce", &runReduce, &readShared<RowLengths>};

void reduceRows(Graph &graph, const Tensor &in, const Tensor &out, const ReduceParams &params, std::vector<poplar::ComputeSet> &computeSets,
                std::size_t first, const std::string &name) {
  const std::size_t outputs = in.dim(0);
  const bool bits = params.op == Operation::LOGICAL_AND || params.op == Operation::LOGICAL_OR;
  if (bits != (in.elementType() == poplar::BOOL))
    throw poputil::poplibs_error(name + ": operation " + operationName(params.op) + " on elements of type " + in.elementType().toString());
  if (params.useScale && (params.scale.numElements() != 1 || params.scale.elementType() != poplar::FLOAT))
    throw poputil::poplibs_error(name + ": the scale of a reduction is one FLOAT");
  RowLengths last{params.op, in.elementType(), out.elementType(), params.update, params.useScale, {}};
  const std::vector<LocalPart> parts = in.numElements() ? partsByInput(graph, in, name) : std::vector<LocalPart>{};
  std::size_t partials = 0;
  for (const LocalPart &part : parts)
    partials += part.outputs.size();
  std::size_t stage = first;
  std::vector<GatheredPart> gathered;
  if (2 * partials > in.numElements() || partials == 0) {
    gathered = wholeRows(graph, in, out, name);
  } else {
    RowLengths early{params.op, in.elementType(), partialType(in.elementType()), false, false, {}};
    const poplar::ComputeSet computeSet = computeSetAt(graph, computeSets, stage++, name);
    const Tensor flat = in.flatten();
    std::vector<std::vector<Tensor>> pieces(outputs);
    for (const LocalPart &part : parts) {
      const Tensor partial = graph.addVariable(early.out, {part.outputs.size()}, name + "/partials");
      graph.setTileMapping(partial, part.tile);
      early.ends = part.ends;
      addVertex(graph, computeSet, early, part, pick(flat, part.intervals), partial, {});
      for (std::size_t i = 0; i < part.outputs.size(); ++i)
        pieces[part.outputs[i]].push_back(partial.slice(i, i + 1));
    }
    last.op = later(params.op);
    last.in = early.out;
    gathered = partialRows(graph, pieces, out, name);
  }
  const poplar::ComputeSet computeSet = computeSetAt(graph, computeSets, stage, name);
  for (const GatheredPart &part : gathered) {
    last.ends = part.ends;
    addVertex(graph, computeSet, last, part, part.elements, picked(out, part.outputs), params.scale);
  }
}

Tensor asRows(const Tensor &in, const std::vector<std::size_t> &dims, std::vector<std::size_t> &shape) {
  std::vector<unsigned> order;
  std::size_t reduced = 1;
  for (unsigned d = 0; d < in.rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      order.push_back(d);
      shape.push_back(in.dim(d));
    }
  for (unsigned d = 0; d < in.rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) {
      order.push_back(d);
      reduced *= in.dim(d);
    }
  for (std::size_t d : dims)
    if (d >= in.rank())
      throw poputil::poplibs_error("reduce: dimension " + std::to_string(d) + " of a tensor of shape " + in.shapeToString());
  std::size_t outputs = 1;
  for (std::size_t d : shape)
    outputs *= d;
  return in.dimShuffle(order).reshape({outputs, reduced});
}

} // namespace poplibs

namespace popops {

using poplar::ComputeSet;
using poplar::Graph;
using poplar::Tensor;

namespace {

/// Outputs are distributed over the tiles, one after the other.
Tensor makeOutput(Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape, const std::string &name) {
  const Tensor out = graph.addVariable(type, shape, name + "/Out");
  poputil::mapTensorLinearly(graph, out, 1, 1);
  return out;
}

void append(poplar::program::Sequence &prog, const std::vector<ComputeSet> &computeSets) {
  for (const ComputeSet &computeSet : computeSets)
    prog.add(poplar::program::Execute(computeSet));
}

/// Dimensions of size one are ignored, as in PopLibs.
void checkOutput(const Tensor &out, std::vector<std::size_t> shape, const std::string &name) {
  std::vector<std::size_t> given = out.shape();
  for (std::vector<std::size_t> *sizes : {&shape, &given})
    sizes->erase(std::remove(sizes->begin(), sizes->end(), 1), sizes->end());
  if (given != shape)
    throw poputil::poplibs_error(name + ": the output has shape " + out.shapeToString() + ", not that of the dimensions that remain");
}

} // namespace

Tensor reduce(Graph &graph, const Tensor &in, const poplar::Type &outType, const std::vector<std::size_t> &dims, ReduceParams params,
              std::vector<ComputeSet> &computeSets, const poplar::DebugContext &context, const poplar::OptionFlags &) {
  poplibs::requireLibrary(graph, "popops");
  const std::string name = poplibs::contextName(context, "reduce");
  if (params.update)
    throw poputil::poplibs_error(name + ": an update needs an output: use reduceWithOutput");
  std::vector<std::size_t> shape;
  const Tensor rows = poplibs::asRows(in, dims, shape);
  const Tensor out = makeOutput(graph, outType, shape, name);
  poplibs::reduceRows(graph, rows, out.flatten(), params, computeSets, computeSets.size(), name);
  return out;
}

Tensor reduce(Graph &graph, const Tensor &in, const std::vector<std::size_t> &dims, ReduceParams params, std::vector<ComputeSet> &computeSets,
              const poplar::DebugContext &context, const poplar::OptionFlags &options) {
  return reduce(graph, in, in.elementType(), dims, params, computeSets, context, options);
}

void reduceWithOutput(Graph &graph, const Tensor &in, const Tensor &out, const std::vector<std::size_t> &dims, ReduceParams params,
                      std::vector<ComputeSet> &computeSets, const poplar::DebugContext &context, const poplar::OptionFlags &) {
  poplibs::requireLibrary(graph, "popops");
  const std::string name = poplibs::contextName(context, "reduce");
  std::vector<std::size_t> shape;
  const Tensor rows = poplibs::asRows(in, dims, shape);
  checkOutput(out, shape, name);
  poplibs::reduceRows(graph, rows, out.flatten(), params, computeSets, computeSets.size(), name);
}

Tensor reduce(Graph &graph, const Tensor &in, const poplar::Type &outType, const std::vector<std::size_t> &dims, ReduceParams params,
              poplar::program::Sequence &prog, const poplar::DebugContext &context, const poplar::OptionFlags &options) {
  std::vector<ComputeSet> computeSets;
  const Tensor out = reduce(graph, in, outType, dims, params, computeSets, context, options);
  append(prog, computeSets);
  return out;
}

Tensor reduce(Graph &graph, const Tensor &in, const std::vector<std::size_t> &dims, ReduceParams params, poplar::program::Sequence &prog,
              const poplar::DebugContext &context, const poplar::OptionFlags &options) {
  return reduce(graph, in, in.elementType(), dims, params, prog, context, options);
}

void reduceWithOutput(Graph &graph, const Tensor &in, const Tensor &out, const std::vector<std::size_t> &dims, ReduceParams params,
                      poplar::program::Sequence &prog, const poplar::DebugContext &context, const poplar::OptionFlags &options) {
  std::vector<ComputeSet> computeSets;
  reduceWithOutput(graph, in, out, dims, params, computeSets, context, options);
  append(prog, computeSets);
}

void reduceMany(Graph &graph, const std::vector<SingleReduceOp> &reductions, std::vector<Tensor> &outputs, poplar::program::Sequence &prog,
                const poplar::DebugContext &context, const poplar::OptionFlags &) {
  poplibs::requireLibrary(graph, "popops");
  const std::string name = poplibs::contextName(context, "reduceMany");
  const bool make = outputs.empty();
  if (!make && outputs.size() != reductions.size())
    throw poputil::poplibs_error(name + ": " + std::to_string(outputs.size()) + " outputs for " + std::to_string(reductions.size()) + " reductions");
  std::vector<ComputeSet> computeSets;
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    const SingleReduceOp &r = reductions[i];
    std::vector<std::size_t> shape;
    const Tensor rows = poplibs::asRows(r.in, r.dims, shape);
    if (make)
      outputs.push_back(makeOutput(graph, r.useOutType ? r.outType : r.in.elementType(), shape, name));
    checkOutput(outputs[i], shape, name);
    poplibs::reduceRows(graph, rows, outputs[i].flatten(), r.params, computeSets, 0, name);
  }
  append(prog, computeSets);
}

} // namespace popops
