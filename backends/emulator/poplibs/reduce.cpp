// popops/Reduce.hpp: partial sums on the tiles of the elements, then the sum for each output on its tile.
#include "reduce.hpp"

#include <algorithm>
#include <cmath>

#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "reduction_vertex.hpp"

namespace poplibs {

using popops::Operation;
using popops::ReduceParams;

namespace {

/// An output with more partial results than this gets them in two stages: one tile would need more code to receive them than it has room.
constexpr std::size_t mostPartials = 2048;

/// A partial result of an output, and its tile.
struct Piece {
  Tensor value;
  unsigned tile;
};

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
  const poplar::VertexRef v = graph.addVertex(computeSet, reductionType(graph, rows));
  graph.connect(v["out"], out);
  graph.connect(v["in"], elements);
  if (rows.scaled)
    graph.connect(v["scale"], scale.reshape({1}));
  graph.setTileMapping(v, part.tile);
  graph.setPerfEstimate(v, reductionCycles(graph, rows));
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
std::vector<GatheredPart> partialRows(const Graph &graph, const std::vector<std::vector<Piece>> &pieces, const Tensor &out, const std::string &name) {
  return partsByOutput(graph, out, name, [&](const poplar::Interval &rows, Part &part, std::vector<Tensor> &elements) {
    for (std::size_t row = rows.begin(); row < rows.end(); ++row) {
      for (const Piece &piece : pieces[row])
        elements.push_back(piece.value);
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

/// Reduces groups of partial results of one output, about as many groups as a group has members, each on the tile of its first member.
std::vector<Piece> groupedPieces(Graph &graph, poplar::ComputeSet computeSet, RowLengths rows, const std::vector<Piece> &pieces, const std::string &name) {
  std::vector<Piece> groups;
  const std::size_t size = std::size_t(std::ceil(std::sqrt(double(pieces.size()))));
  for (std::size_t begin = 0; begin < pieces.size(); begin += size) {
    std::vector<Tensor> members;
    for (std::size_t i = begin; i < std::min(begin + size, pieces.size()); ++i)
      members.push_back(pieces[i].value);
    const Piece group{graph.addVariable(rows.out, {1}, name + "/partials"), pieces[begin].tile};
    graph.setTileMapping(group.value, group.tile);
    rows.ends = {std::uint32_t(members.size())};
    addVertex(graph, computeSet, rows, Part{group.tile, {0}, rows.ends}, poplar::concat(members), group.value, {});
    groups.push_back(group);
  }
  return groups;
}

} // namespace

void reduceRows(Graph &graph, const Tensor &in, const Tensor &out, const ReduceParams &params, std::vector<poplar::ComputeSet> &computeSets,
                std::size_t first, const std::string &name) {
  const std::size_t outputs = in.dim(0);
  const bool bits = params.op == Operation::LOGICAL_AND || params.op == Operation::LOGICAL_OR;
  if (bits != (in.elementType() == poplar::BOOL))
    throw poputil::poplibs_error(name + ": operation " + reductionName(params.op) + " on elements of type " + in.elementType().toString());
  if (params.useScale && (params.scale.numElements() != 1 || params.scale.elementType() != poplar::FLOAT))
    throw poputil::poplibs_error(name + ": the scale of a reduction is one FLOAT");
  RowLengths last{params.op, in.elementType(), out.elementType(), params.update, params.useScale, {}};
  const std::vector<LocalPart> parts = in.numElements() ? partsByInput(graph, in, name) : std::vector<LocalPart>{};
  std::size_t partials = 0;
  for (const LocalPart &part : parts)
    partials += part.outputs.size();
  std::size_t stage = first;
  std::vector<GatheredPart> gathered;
  // Elements that are almost all on tiles of their own need no partial results, unless they are too many for the tile of the output.
  if (partials == 0 || (2 * partials > in.numElements() && in.dim(1) <= mostPartials)) {
    gathered = wholeRows(graph, in, out, name);
  } else {
    RowLengths early{params.op, in.elementType(), partialType(in.elementType()), false, false, {}};
    const poplar::ComputeSet computeSet = computeSetAt(graph, computeSets, stage++, name);
    const Tensor flat = in.flatten();
    std::vector<std::vector<Piece>> pieces(outputs);
    for (const LocalPart &part : parts) {
      const Tensor partial = graph.addVariable(early.out, {part.outputs.size()}, name + "/partials");
      graph.setTileMapping(partial, part.tile);
      early.ends = part.ends;
      addVertex(graph, computeSet, early, part, pick(flat, part.intervals), partial, {});
      for (std::size_t i = 0; i < part.outputs.size(); ++i)
        pieces[part.outputs[i]].push_back({partial.slice(i, i + 1), part.tile});
    }
    last.op = early.op = later(params.op);
    last.in = early.in = early.out;
    const auto tooMany = [](const std::vector<Piece> &of) { return of.size() > mostPartials; };
    if (std::any_of(pieces.begin(), pieces.end(), tooMany)) {
      const poplar::ComputeSet middle = computeSetAt(graph, computeSets, stage++, name);
      for (std::vector<Piece> &of : pieces)
        if (tooMany(of))
          of = groupedPieces(graph, middle, early, of, name);
    }
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
