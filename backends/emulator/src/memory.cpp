// Memory of every tile.
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include "engine_data.hpp"
#include "liveness.hpp"
#include "spoil.hpp"

namespace poplar::core {

namespace {

void addVariables(EngineData &engine) {
  for (const Variable &v : engine.graph->variables)
    for (const Piece &p : v.tiles.pieces()) {
      const std::uint64_t bytes = std::uint64_t(p.end - p.begin) * v.type.size();
      (v.constant ? engine.memory[p.tile].constants : engine.memory[p.tile].variables) += bytes;
    }
}

void addVertices(EngineData &engine) {
  const GraphData &graph = *engine.graph;
  std::set<std::pair<std::uint32_t, const VertexType *>> code;
  std::set<std::pair<std::uint32_t, std::string>> shared;
  for (const auto &step : engine.supersteps)
    for (std::uint32_t v : graph.computeSets[step->computeSet].vertices) {
      const VertexData &vertex = graph.vertices[v];
      TileMemory &tile = engine.memory[vertex.tile];
      tile.vertexState += deviceStateBytes(graph, v);
      tile.edgeLists += deviceListBytes(graph, v);
      if (!code.insert({vertex.tile, vertex.type}).second)
        continue;
      tile.code += vertex.type->codeBytes;
      for (const auto &[name, bytes] : vertex.type->sharedCode)
        if (shared.emplace(vertex.tile, name).second)
          tile.code += bytes;
    }
}

/// Bytes of an exchange buffer on each tile during a compute set: data that arrive before it and data that are sent after it.
template <class F> void forEachBuffer(const Superstep &step, F &&f) {
  for (const TileTraffic &t : step.gather.tiles)
    f(t.tile, t.received + t.linkReceived);
  for (const TileTraffic &t : step.scatter.tiles)
    f(t.tile, t.sent);
}

/// Buffers exist during one step, so the largest step counts. Code is permanent, so all steps count.
void addExchanges(EngineData &engine) {
  const std::uint32_t perFragment = engine.graph->target.getEmulatorModel().fragmentCodeBytes;
  std::vector<std::uint64_t> live(engine.memory.size());
  for (const auto &step : engine.supersteps) {
    std::vector<std::uint64_t> now(engine.memory.size());
    forEachBuffer(*step, [&](std::uint32_t tile, std::uint64_t bytes) { now[tile] += bytes; });
    for (std::size_t i = 0; i < now.size(); ++i)
      live[i] = std::max(live[i], now[i]);
  }
  const auto addCode = [&](const Exchange &exchange) {
    for (const TileTraffic &t : exchange.tiles)
      engine.memory[t.tile].exchangeCode += std::uint64_t(t.fragments) * perFragment;
  };
  for (const auto &step : engine.supersteps) {
    addCode(step->gather);
    addCode(step->scatter);
  }
  for (const CopyStep &copy : engine.copies)
    addCode(copy.exchange);
  for (const RemoteStep &remote : engine.remoteSteps)
    for (const auto &[tile, fragments] : remote.fragments)
      engine.memory[tile].exchangeCode += std::uint64_t(fragments) * perFragment;
  for (std::size_t i = 0; i < live.size(); ++i)
    engine.memory[i].exchangeBuffers = live[i];
}

/// Used instead of an operation if no program runs.
constexpr std::uint32_t between = ~0u;

/// Bytes on each tile at the visited point, and the maximum over all points.
class OverTime {
public:
  OverTime(EngineData &engine, const Usage &usage) : engine_(engine), usage_(usage), now_(usage.variables.size()), always_(usage.variables.size()) {
    for (const TileMemory &tile : engine.memory)
      fixed_.push_back(tile.total() - tile.variables - tile.exchangeBuffers);
    variables_.resize(fixed_.size());
    buffers_.resize(fixed_.size());
    peak_.resize(fixed_.size());
  }

  void visit(std::uint32_t program, std::uint32_t op, const Set &during) {
    if (engine_.memoryOverTime.empty())
      always_ = during;
    always_ &= during;
    follow(during);
    std::fill(buffers_.begin(), buffers_.end(), 0);
    addBuffers(op, [&](std::uint32_t tile, std::uint64_t bytes) { buffers_[tile] += bytes; });
    MemoryPoint point;
    point.program = program;
    point.name = op == between ? "between runs" : labelOf(engine_, op);
    for (std::uint32_t t = 0; t < fixed_.size(); ++t) {
      const std::uint64_t bytes = fixed_[t] + variables_[t] + buffers_[t];
      point.variablesOfAll += variables_[t];
      point.exchangeBuffersOfAll += buffers_[t];
      if (bytes > point.bytes)
        point.bytes = bytes, point.fullestTile = t;
      // Points are visited from the last to the first, so of several equal peaks the first is kept.
      if (bytes < peak_[t])
        continue;
      peak_[t] = bytes;
      TileMemory &tile = engine_.memory[t];
      tile.peakVariables = variables_[t];
      tile.peakExchangeBuffers = buffers_[t];
      tile.peakPoint = std::uint32_t(engine_.memoryOverTime.size());
    }
    engine_.memoryOverTime.push_back(std::move(point));
  }

  /// Every other point of the walk: bytes on one tile there.
  void fill(std::size_t point, std::uint32_t op, const Set &during, std::uint32_t tile) {
    follow(during);
    MemoryPoint &found = engine_.memoryOverTime[point];
    found.variables = variables_[tile];
    addBuffers(op, [&](std::uint32_t t, std::uint64_t bytes) { found.exchangeBuffers += t == tile ? bytes : 0; });
  }

  /// Points in the order in which programs run.
  void finish() {
    std::vector<MemoryPoint> &points = engine_.memoryOverTime;
    always_.each([&](std::size_t number) {
      for (const TileBytes &h : usage_.bytes[number])
        engine_.memory[h.tile].alwaysVariables += h.bytes;
    });
    std::vector<std::uint32_t> place(points.size());
    for (std::uint32_t i = 0; i < points.size(); ++i)
      place[i] = i;
    std::stable_sort(place.begin(), place.end(), [&](std::uint32_t a, std::uint32_t b) {
      return points[a].program != points[b].program ? points[a].program < points[b].program : a > b;
    });
    std::vector<MemoryPoint> ordered;
    std::vector<std::uint32_t> to(points.size());
    for (std::uint32_t i : place) {
      to[i] = std::uint32_t(ordered.size());
      ordered.push_back(std::move(points[i]));
    }
    points = std::move(ordered);
    for (TileMemory &tile : engine_.memory)
      tile.peakPoint = to[tile.peakPoint];
  }

private:
  template <class F> void addBuffers(std::uint32_t op, F &&f) const {
    if (op != between && engine_.ops[op].kind == ProgramKind::Execute)
      forEachBuffer(*engine_.supersteps[engine_.ops[op].number], f);
  }

  /// Neighbouring points differ only slightly.
  void follow(const Set &during) {
    Set changed = now_;
    changed ^= during;
    changed.each([&](std::size_t number) {
      const bool begins = during.has(number);
      for (const TileBytes &h : usage_.bytes[number])
        variables_[h.tile] += begins ? h.bytes : -h.bytes;
    });
    now_ = during;
  }

  /// Label of an operation in the profile.
  static std::string labelOf(const EngineData &engine, std::uint32_t number) {
    const Op &op = engine.ops[number];
    if (const std::string *name = stepName(engine, op))
      return *name;
    if (op.kind == ProgramKind::Print)
      return "print " + op.message;
    return op.message.empty() ? "decision" : op.message;
  }

  EngineData &engine_;
  const Usage &usage_;
  Set now_, always_;
  std::vector<std::uint64_t> fixed_, variables_, buffers_, peak_;
};

std::uint32_t fullestTile(const std::vector<TileMemory> &memory) {
  const auto most = std::max_element(memory.begin(), memory.end(), [](const TileMemory &a, const TileMemory &b) { return a.peak() < b.peak(); });
  return std::uint32_t(most - memory.begin());
}

/// The three variables that use most of a tile's memory at its peak.
std::string biggestVariables(const GraphData &graph, const Usage &usage, const Set &live, unsigned tile) {
  std::vector<std::pair<std::uint64_t, std::string>> held;
  live.each([&](std::size_t number) {
    for (const TileBytes &h : usage.bytes[number])
      if (h.tile == tile && h.bytes > 0)
        held.emplace_back(h.bytes, graph.variables[usage.variables[number]].name);
  });
  std::stable_sort(held.begin(), held.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  std::ostringstream text;
  for (std::size_t i = 0; i < held.size() && i < 3; ++i)
    text << (i ? ", " : "") << held[i].second << " (" << held[i].first << " bytes)";
  return text.str();
}

[[noreturn]] void throwTooLarge(const EngineData &engine, const Usage &usage, const Set &live, std::uint32_t tile) {
  const std::uint64_t available = engine.graph->target.getBytesPerTile();
  const TileMemory &worst = engine.memory[tile];
  const auto over = std::count_if(engine.memory.begin(), engine.memory.end(), [&](const TileMemory &t) { return t.peak() > available; });
  std::ostringstream text;
  text << "out of memory on tile " << tile << ": " << worst.peak() << " bytes needed in '"
       << engine.memoryOverTime[worst.peakPoint].name << "', " << available << " bytes available (" << worst.peakVariables << " variables live there, " << worst.constants << " constants, "
       << worst.vertexState + worst.edgeLists << " vertices, " << worst.code + worst.controlCode << " code, " << worst.stack << " stack, "
       << worst.peakExchangeBuffers << " exchange buffers, " << worst.exchangeCode << " exchange code; " << worst.total()
       << " with all that exists at any time; " << over
       << " tiles need too much); its biggest variables there: " << biggestVariables(*engine.graph, usage, live, tile);
  throw graph_memory_allocation_error(text.str(), tile, worst.peak(), available);
}

/// Variables that are live at each point; the peak of every tile, and the bytes of the fullest tile at every point.
void addTime(EngineData &engine) {
  const Usage usage = findUsage(engine);
  const Liveness liveness(engine, usage);
  OverTime time(engine, usage);
  const std::uint32_t programs = std::uint32_t(engine.programs.size());
  liveness.walk([&](std::uint32_t program, std::uint32_t op, const Set &during, const Set &) { time.visit(program, op, during); });
  time.visit(programs, between, liveness.between());
  const std::uint32_t fullest = fullestTile(engine.memory);
  Set live(usage.variables.size());
  std::size_t point = 0;
  const auto look = [&](std::uint32_t op, const Set &during) {
    if (point == engine.memory[fullest].peakPoint)
      live = during;
    time.fill(point++, op, during, fullest);
  };
  liveness.walk([&](std::uint32_t, std::uint32_t op, const Set &during, const Set &) { look(op, during); });
  look(between, liveness.between());
  time.finish();
  if (spoilsDead())
    planSpoiling(engine, usage, liveness);
  if (engine.memory[fullest].peak() > engine.graph->target.getBytesPerTile())
    throwTooLarge(engine, usage, live, fullest);
}

} // namespace

void accountMemory(EngineData &engine) {
  const Target &target = engine.graph->target;
  engine.memory.assign(target.getNumTiles(), {});
  addVariables(engine);
  if (target.getTargetType() == TargetType::CPU)
    return;
  for (TileMemory &tile : engine.memory) {
    tile.controlCode = target.getEmulatorModel().controlCodeBytes;
    tile.stack = target.getEmulatorModel().stackBytes;
  }
  addVertices(engine);
  addExchanges(engine);
  addTime(engine);
}

} // namespace poplar::core
