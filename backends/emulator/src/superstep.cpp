#include "superstep.hpp"

#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bounds.hpp"
#include "graph_data.hpp"
#include "race.hpp"
#include "workers.hpp"

namespace poplar::core {

namespace {

/// Contents of an edge field in a vertex's state.
struct EdgeSlot {
  char *data;
  std::uint32_t count;
};
static_assert(sizeof(EdgeSlot) == 16, "edges are 16 bytes");

std::size_t roundUp(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

std::size_t fieldSize(const GraphData &graph, std::uint32_t vertex, std::uint32_t field) {
  const auto found = graph.fieldSizes.find({vertex, field});
  return found == graph.fieldSizes.end() ? 0 : found->second;
}

/// Bytes after a vertex's state: rows of its lists, elements of its state vectors.
std::size_t extraBytes(const GraphData &graph, std::uint32_t v) {
  const VertexType &type = *graph.vertices[v].type;
  std::size_t bytes = 0;
  for (std::uint32_t f = 0; f < type.fields.size(); ++f) {
    const Field &field = type.fields[f];
    if (field.kind == FieldKind::List) {
      std::size_t rows = fieldSize(graph, v, f);
      for (const Edge &e : graph.vertices[v].edges)
        if (e.field == f)
          rows = std::max<std::size_t>(rows, e.row + 1);
      bytes += rows * sizeof(EdgeSlot);
    } else if (field.kind == FieldKind::State) {
      bytes += roundUp(fieldSize(graph, v, f) * field.type.size(), 16);
    }
  }
  return bytes;
}

class Planner {
public:
  Planner(const GraphData &graph, const Storage &storage, Superstep &step) : graph_(graph), storage_(storage), step_(step) {}

  void plan() {
    std::vector<std::uint32_t> order = graph_.computeSets[step_.computeSet].vertices;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return graph_.vertices[a].tile < graph_.vertices[b].tile; });
    std::size_t bytes = 0;
    std::vector<std::size_t> offsets;
    for (std::uint32_t v : order) {
      if (graph_.vertices[v].tile == ~0u)
        throw invalid_tile_mapping("no tile is mapped for " + graph_.vertexName(v) + " of compute set '" + step_.name + "'");
      offsets.push_back(bytes);
      bytes += roundUp(roundUp(graph_.vertices[v].type->size, 16) + extraBytes(graph_, v), 64);
    }
    step_.states = AlignedBytes(bytes);
    step_.calls.reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      addVertex(order[i], step_.states.data() + offsets[i]);
    applyFieldValues(order, offsets);
    step_.initialStates.assign(step_.states.data(), step_.states.data() + bytes);
    step_.groupCycles.assign(step_.groups.size(), 0);
    step_.guessed.assign(step_.estimated.size(), 0);
    step_.plain = step_.staged.empty() && std::none_of(step_.calls.begin(), step_.calls.end(),
                                                       [](const VertexCall &call) { return call.multi || call.wholeTile; });
  }

private:
  void addVertex(std::uint32_t v, char *state) {
    const VertexData &vertex = graph_.vertices[v];
    VertexCall call;
    call.compute = vertex.type->compute;
    call.state = state;
    call.multi = vertex.type->multi;
    call.wholeTile = vertex.type->wholeTile;
    call.stateBytes = std::uint32_t(roundUp(vertex.type->size, 16) + extraBytes(graph_, v));
    call.firstStaged = std::uint32_t(step_.staged.size());
    call.firstWritten = std::uint32_t(step_.written.size());
    scratch_ = 0;
    std::copy(vertex.type->initial.begin(), vertex.type->initial.end(), state);
    placeExtras(v, state);
    std::vector<std::uint32_t> connected(vertex.type->fields.size(), 0);
    for (const Edge &edge : vertex.edges) {
      ++connected[edge.field];
      addEdge(v, edge, state);
    }
    requireConnected(v, connected, state);
    call.numStaged = std::uint32_t(step_.staged.size()) - call.firstStaged;
    call.numWritten = std::uint32_t(step_.written.size()) - call.firstWritten;
    step_.scratchBytes = std::max(step_.scratchBytes, std::uint32_t(scratch_));
    setStaticCycles(v, call);
    if (step_.groups.empty() || step_.groups.back().tile != vertex.tile)
      step_.groups.push_back({vertex.tile, std::uint32_t(step_.calls.size()), 0});
    ++step_.groups.back().numCalls;
    step_.calls.push_back(call);
  }

  void placeExtras(std::uint32_t v, char *state) {
    const VertexType &type = *graph_.vertices[v].type;
    char *extra = state + roundUp(type.size, 16);
    for (std::uint32_t f = 0; f < type.fields.size(); ++f) {
      const Field &field = type.fields[f];
      if (field.kind != FieldKind::List && field.kind != FieldKind::State)
        continue;
      std::size_t count = fieldSize(graph_, v, f);
      if (field.kind == FieldKind::List)
        for (const Edge &e : graph_.vertices[v].edges)
          if (e.field == f)
            count = std::max<std::size_t>(count, e.row + 1);
      const EdgeSlot slot{extra, std::uint32_t(count)};
      std::memcpy(state + field.offset, &slot, 12);
      extra += field.kind == FieldKind::List ? count * sizeof(EdgeSlot) : roundUp(count * field.type.size(), 16);
    }
  }

  void addEdge(std::uint32_t v, const Edge &edge, char *state) {
    const Field &field = graph_.vertices[v].type->fields[edge.field];
    char *slot = state + field.offset;
    if (field.kind == FieldKind::List) {
      char *rows;
      std::memcpy(&rows, slot, sizeof rows);
      slot = rows + edge.row * sizeof(EdgeSlot);
    }
    EdgeSlot value{nullptr, std::uint32_t(edge.elements)};
    const std::size_t bytes = field.type.size();
    const Block *blocks = &graph_.blocks[edge.firstBlock];
    for (std::uint32_t b = 0; b < edge.numBlocks; ++b)
      if (field.writes() && graph_.variables[blocks[b].var].constant)
        throw graph_connection_error(graph_.vertexName(v) + " writes constant '" + graph_.variables[blocks[b].var].name + "'");
    if (edge.numBlocks == 1 && blocks[0].contiguous())
      value.data = storage_.base(blocks[0].var) + blocks[0].start * Index(bytes);
    const bool aligned = reinterpret_cast<std::uintptr_t>(value.data) % std::max<std::size_t>(1, field.alignment) == 0;
    if (edge.elements > 0 && (!value.data || !aligned || guarded_))
      stage(v, edge, field, reinterpret_cast<char **>(slot));
    std::memcpy(slot, &value, 12);
    if (!graph_.vertices[v].type->multi || !field.writes())
      return;
    step_.written.push_back({reinterpret_cast<char **>(slot), std::size_t(edge.elements) * bytes});
    if (apart_)
      step_.writtenNames.push_back(nameOf(v, edge, field));
  }

  std::string nameOf(std::uint32_t v, const Edge &edge, const Field &field) const {
    return "field '" + field.name + "'" + (field.kind == FieldKind::List ? "[" + std::to_string(edge.row) + "]" : "") + " of " +
           graph_.vertexName(v) + " in compute set '" + step_.name + "'";
  }

  void stage(std::uint32_t v, const Edge &edge, const Field &field, char **slot) {
    StagedEdge staged;
    staged.slot = slot;
    if (guarded_) {
      scratch_ += guardBytes;
      step_.stagedNames.push_back(nameOf(v, edge, field));
    }
    staged.scratchOffset = std::uint32_t(scratch_);
    staged.firstStrip = std::uint32_t(step_.strips.size());
    staged.numStrips = edge.numBlocks;
    staged.elementBytes = std::uint16_t(field.type.size());
    staged.writes = field.writes();
    for (std::uint32_t b = edge.firstBlock; b < edge.firstBlock + edge.numBlocks; ++b) {
      const Block &block = graph_.blocks[b];
      step_.strips.push_back(
          {storage_.base(block.var) + block.start * Index(field.type.size()), block.n0, block.n1, block.s0, block.s1});
    }
    scratch_ = roundUp(scratch_ + std::size_t(edge.elements) * field.type.size() + (guarded_ ? guardBytes : 0), 64);
    step_.staged.push_back(staged);
  }

  void requireConnected(std::uint32_t v, const std::vector<std::uint32_t> &connected, char *state) const {
    const VertexType &type = *graph_.vertices[v].type;
    for (std::uint32_t f = 0; f < type.fields.size(); ++f) {
      const Field &field = type.fields[f];
      std::uint32_t needed = field.isEdge() ? 1 : 0;
      if (field.kind == FieldKind::List)
        std::memcpy(&needed, state + field.offset + sizeof(char *), sizeof needed);
      const bool emptyList = field.kind == FieldKind::List && needed == 0 && !graph_.fieldSizes.count({v, f});
      if (connected[f] < needed || emptyList)
        throw graph_connection_error("field '" + field.name + "' of " + graph_.vertexName(v) + " in compute set '" + step_.name +
                                     "' is not connected");
    }
  }

  void setStaticCycles(std::uint32_t v, VertexCall &call) {
    const VertexData &vertex = graph_.vertices[v];
    call.guess = noGuess;
    call.cycles = graph_.perfEstimateOf(v).cycles;
    if (call.cycles != noEstimate)
      return;
    std::uint64_t bytes = 0;
    for (const Edge &e : vertex.edges)
      bytes += std::uint64_t(e.elements) * vertex.type->fields[e.field].type.size();
    const EmulatorModel &model = graph_.target.getEmulatorModel();
    call.cycles = std::uint64_t(std::ceil(model.estimateStartCycles + model.estimateVectorCycles * double((bytes + 7) / 8)));
    const auto found = std::find(step_.estimated.begin(), step_.estimated.end(), vertex.type->name);
    call.guess = std::uint16_t(found - step_.estimated.begin());
    if (found == step_.estimated.end())
      step_.estimated.push_back(vertex.type->name);
  }

  /// Initial values of fields other than edges.
  void applyFieldValues(const std::vector<std::uint32_t> &order, const std::vector<std::size_t> &offsets) {
    std::vector<std::int64_t> offsetOf(graph_.vertices.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i)
      offsetOf[order[i]] = std::int64_t(offsets[i]);
    for (const FieldValue &value : graph_.fieldValues) {
      if (offsetOf[value.vertex] < 0)
        continue;
      const Field &field = graph_.vertices[value.vertex].type->fields[value.field];
      char *to = step_.states.data() + offsetOf[value.vertex] + field.offset;
      if (field.kind == FieldKind::State)
        std::memcpy(&to, to, sizeof to);
      for (std::size_t i = 0; i < value.values.size(); ++i)
        writeValue(to + i * field.type.size(), field.type, value.values[i]);
    }
  }

  const GraphData &graph_;
  const Storage &storage_;
  Superstep &step_;
  const bool guarded_ = checksBounds(), apart_ = checksWorkers();
  std::size_t scratch_ = 0;
};

} // namespace

std::unique_ptr<Superstep> planSuperstep(const GraphData &graph, std::uint32_t computeSet, const Storage &storage) {
  auto step = std::make_unique<Superstep>();
  step->computeSet = computeSet;
  step->name = graph.computeSets[computeSet].name;
  Planner(graph, storage, *step).plan();
  checkRaces(graph, computeSet);
  planComputeExchange(graph, *step);
  return step;
}

void planComputeExchange(const GraphData &graph, Superstep &step) {
  std::vector<Transfer> in, out;
  for (std::uint32_t v : graph.computeSets[step.computeSet].vertices) {
    const VertexData &vertex = graph.vertices[v];
    const auto user = [&] { return graph.vertexName(v) + " of compute set '" + step.name + "'"; };
    for (const Edge &edge : vertex.edges) {
      const Direction direction = vertex.type->fields[edge.field].direction;
      for (std::uint32_t b = edge.firstBlock; b < edge.firstBlock + edge.numBlocks; ++b) {
        const std::uint32_t var = graph.blocks[b].var;
        forEachInterval(graph.blocks[b], [&](Index begin, Index end) {
          forEachTile(graph, var, begin, end, user, [&](Index from, Index to, std::uint32_t tile) {
            if (tile == vertex.tile)
              return;
            if (direction != Direction::Output)
              in.push_back({tile, vertex.tile, var, var, from, from, to - from});
            if (direction != Direction::Input)
              out.push_back({vertex.tile, tile, var, var, from, from, to - from});
          });
        });
      }
    }
  }
  step.gather = planExchange(graph, std::move(in));
  step.scatter = planExchange(graph, std::move(out));
}

std::uint64_t deviceStateBytes(const GraphData &graph, std::uint32_t v) {
  const VertexType &type = *graph.vertices[v].type;
  std::uint64_t bytes = 0;
  for (std::uint32_t f = 0; f < type.fields.size(); ++f) {
    const Field &field = type.fields[f];
    if (field.kind == FieldKind::Value)
      bytes += field.type.size();
    else if (field.kind == FieldKind::State)
      bytes += 8 + fieldSize(graph, v, f) * field.type.size();
    else
      bytes += 4 + ((field.kind == FieldKind::Vector && field.layout == Layout::Span) || field.kind == FieldKind::List ? 4 : 0);
  }
  return roundUp(bytes, 4);
}

std::uint64_t deviceListBytes(const GraphData &graph, std::uint32_t v) {
  const VertexData &vertex = graph.vertices[v];
  std::uint64_t bytes = 4; // its position in the compute set's list of vertices
  for (const Edge &e : vertex.edges)
    if (vertex.type->fields[e.field].kind == FieldKind::List)
      bytes += 8;
  return bytes;
}

} // namespace poplar::core
