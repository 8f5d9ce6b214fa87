// Requirements on a graph from a file that are checked before it is used.
#include "graph_archive.hpp"

#include <algorithm>
#include <set>

#include "archive.hpp"

namespace poplar::core {

namespace {

/// Elements of a vector in a vertex: more than the bytes of any tile.
constexpr std::size_t largestState = std::size_t(1) << 26;

bool isIn(std::uint64_t number, std::size_t size) { return number < size; }
bool isInOrNone(std::uint32_t number, std::size_t size) { return number == ~0u || number < size; }

/// Whether all n elements start, start + step, … are in [0, size).
bool fits(Index start, Index step, Index n, Index size) {
  if (n <= 0)
    return n == 0;
  Index last = 0;
  return start >= 0 && start < size && !__builtin_mul_overflow(step, n - 1, &last) && !__builtin_add_overflow(start, last, &last) && last >= 0 &&
         last < size;
}

void requireVariable(const GraphData &graph, const Variable &v) {
  const std::size_t tiles = graph.target.getNumTiles();
  Index elements = 1;
  for (std::size_t d : v.shape)
    require(d <= std::size_t(mostElements) && !__builtin_mul_overflow(elements, Index(d), &elements), "a variable that is too large");
  require(elements == v.elements && elements <= mostElements, "a variable of another size than its shape");
  require(v.type.size() > 0, "a variable without a type");
  require(v.value.empty() || v.value.size() == std::size_t(elements) * v.type.size(), "a constant of another size than its shape");
  require(isInOrNone(v.owner, graph.vertices.size()), "a constant of a vertex that there is not");
  for (const Piece &p : v.tiles.pieces())
    require(p.begin >= 0 && p.begin <= p.end && p.end <= elements && isIn(p.tile, tiles), "a variable on a tile that there is not");
}

void requireVertex(const GraphData &graph, const VertexData &v) {
  require(isIn(v.computeSet, graph.computeSets.size()), "a vertex of a compute set that there is not");
  require(isInOrNone(v.tile, graph.target.getNumTiles()), "a vertex on a tile that there is not");
  require(v.firstValue == ~std::size_t(0) || (v.firstValue <= v.endValue && v.endValue <= graph.fieldValues.size()),
          "a vertex with values that there are not");
  for (const Edge &e : v.edges) {
    require(isIn(e.field, v.type->fields.size()) && v.type->fields[e.field].isEdge(), "an edge of a field that there is not");
    require(e.row <= v.edges.size() || v.type->fields[e.field].kind != FieldKind::List, "a row of a list that there is not");
    require(std::uint64_t(e.firstBlock) + e.numBlocks <= graph.blocks.size(), "an edge of elements that there are not");
    Index elements = 0;
    for (std::uint32_t b = e.firstBlock; b < e.firstBlock + e.numBlocks; ++b)
      elements += graph.blocks[b].size();
    require(elements == e.elements, "an edge of another size than its elements");
  }
}

void requireFieldValue(const GraphData &graph, const FieldValue &value) {
  require(isIn(value.vertex, graph.vertices.size()) && isIn(value.field, graph.vertices[value.vertex].type->fields.size()),
          "a value of a field that there is not");
  const Field &field = graph.vertices[value.vertex].type->fields[value.field];
  const auto size = graph.fieldSizes.find({value.vertex, value.field});
  const std::size_t most = field.isEdge() ? 0 : field.kind == FieldKind::Value ? 1 : size == graph.fieldSizes.end() ? 0 : size->second;
  require(value.values.size() <= most, "a value of a field that does not take it");
}

/// For a built-in type; fields of codelets come from their own table.
void requireFields(const VertexType &type) {
  require(type.size <= 4096, "a vertex type that is too large");
  for (const Field &f : type.fields)
    require(f.kind == FieldKind::Vector && f.direction <= Direction::InOut && f.layout <= Layout::CompactPtr && f.offset + 16ull <= type.size,
            "a field outside of its vertex");
}

void requireBlock(const GraphData &graph, const Block &b) {
  require(isIn(b.var, graph.variables.size()), "elements of a variable that there is not");
  const Index size = graph.variables[b.var].elements;
  Index last = 0;
  require(b.n0 > 0 && b.n1 > 0 && fits(b.start, b.s0, b.n0, size) && fits(b.start, b.s1, b.n1, size) &&
              !__builtin_mul_overflow(b.s0, Index(b.n0) - 1, &last) && fits(b.start + last, b.s1, b.n1, size),
          "elements outside of their variable");
}

void requireList(const GraphData &graph, const RunList &list) {
  if (list.runs.empty() && list.first.empty())
    return;
  require(list.first.size() == list.runs.size() + 1 && list.first[0] == 0, "a list of runs that does not add up");
  for (std::size_t i = 0; i < list.runs.size(); ++i) {
    const Run &r = list.runs[i];
    require(isIn(r.var, graph.variables.size()) && r.count >= 0 && fits(r.start, r.stride, r.count, graph.variables[r.var].elements),
            "a run outside of its variable");
    require(list.first[i + 1] - list.first[i] == r.count, "a list of runs that does not add up");
  }
}

/// The tensors and programs that a program of its kind has.
void requireOperands(const ProgramData &p) {
  const auto is = [&](std::initializer_list<ProgramKind> kinds) { return std::find(kinds.begin(), kinds.end(), p.kind) != kinds.end(); };
  using K = ProgramKind;
  const bool source = is({K::Copy, K::StreamOut, K::RemoteOut, K::WhileTrue, K::WhileFalse, K::If, K::Switch, K::AbortIf, K::Print, K::Error,
                          K::CrossReplica, K::AssumeEqual});
  const bool destination = is({K::Copy, K::StreamIn, K::RemoteIn, K::WriteUndef, K::CrossReplica, K::CycleStamp});
  require((!source || p.source.valid()) && (!destination || p.destination.valid()) && (!p.hasOffset || p.offset.valid()),
          "a program without a tensor that it needs");
  if (is({K::Copy, K::CrossReplica}))
    require(p.source.numElements() == p.destination.numElements() && p.source.elementType() == p.destination.elementType(),
            "a copy between tensors that differ");
  const bool decides = is({K::WhileTrue, K::WhileFalse, K::If, K::Switch, K::AbortIf});
  require(!decides || p.source.numElements() == 1, "a decision without one number");
  const std::size_t children = is({K::WhileTrue, K::WhileFalse, K::If}) ? 2 : is({K::Repeat}) ? 1 : is({K::Switch}) ? p.cases.size() : 0;
  require(p.children.size() >= children, "a program without a body that it needs");
}

} // namespace

void requireVariables(const GraphData &graph) {
  for (const Variable &v : graph.variables)
    requireVariable(graph, v);
}

void requireInside(const GraphData &graph, const View &view) {
  require(view.strides.size() == view.shape.size(), "a view of another rank than its strides");
  require(view.list || isIn(view.var, graph.variables.size()), "a view of a variable that there is not");
  if (view.list)
    requireList(graph, *view.list);
  const Index size = !view.list ? graph.variables[view.var].elements : view.list->first.empty() ? 0 : view.list->first.back();
  Index low = view.offset, high = view.offset, elements = 1;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    Index reach = 0;
    require(view.shape[i] <= std::size_t(mostElements) && !__builtin_mul_overflow(elements, Index(view.shape[i]), &elements),
            "a view that is too large");
    if (view.shape[i] == 0)
      return;
    require(!__builtin_mul_overflow(view.strides[i], Index(view.shape[i]) - 1, &reach) &&
                !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high),
            "a view that is too large");
  }
  require(low >= 0 && high < size, "a view outside of its variable");
}

void requireConsistent(const GraphData &graph) {
  require(graph.replicas > 0 && graph.target.getNumTiles() > 0, "a graph without a machine");
  requireVariables(graph);
  for (const Block &b : graph.blocks)
    requireBlock(graph, b);
  for (const VertexData &v : graph.vertices) {
    if (!v.type->builtinKind.empty())
      requireFields(*v.type);
    requireVertex(graph, v);
  }
  for (std::uint32_t c = 0; c < graph.computeSets.size(); ++c)
    for (std::uint32_t v : graph.computeSets[c].vertices)
      require(isIn(v, graph.vertices.size()) && graph.vertices[v].computeSet == c, "a compute set of vertices that there are not");
  for (const FieldValue &f : graph.fieldValues)
    requireFieldValue(graph, f);
  for (const auto &[where, size] : graph.fieldSizes)
    require(isIn(where.first, graph.vertices.size()) && size <= largestState, "a size of a field that there is not");
  for (std::uint32_t v : graph.replicaIndices)
    require(isIn(v, graph.variables.size()) && graph.variables[v].elements == 1 && graph.variables[v].type == UNSIGNED_INT,
            "a replica index that there is not");
  for (const TensorValue &t : graph.tensorValues)
    require(t.values.size() == 1 || Index(t.values.size()) == t.tensor.view.numElements(), "initial values that do not fit");
  for (std::size_t i = 0; i < graph.streams.size(); ++i)
    require(graph.streams[i].id == i, "a stream that there is not");
  for (std::size_t i = 0; i < graph.remotes.size(); ++i)
    require(graph.remotes[i].id == i, "a remote buffer that there is not");
}

void requireConsistent(const GraphData &graph, const program::Program &program, std::set<const ProgramData *> &seen) {
  const ProgramData &p = *program.data();
  if (!seen.insert(&p).second)
    return;
  requireOperands(p);
  require(p.kind != ProgramKind::Execute || isIn(p.number, graph.computeSets.size()), "a program of a compute set that there is not");
  require(p.kind != ProgramKind::Call || isIn(p.number, graph.functions.size()), "a call of a function that there is not");
  const bool streams = p.kind == ProgramKind::StreamIn || p.kind == ProgramKind::StreamOut;
  require(!streams || isIn(p.stream.id, graph.streams.size()), "a copy of a stream that there is not");
  const bool remote = p.kind == ProgramKind::RemoteIn || p.kind == ProgramKind::RemoteOut;
  require(!remote || isIn(p.remote.id, graph.remotes.size()), "a copy of a remote buffer that there is not");
  for (const program::Program &child : p.children)
    requireConsistent(graph, child, seen);
}

} // namespace poplar::core
