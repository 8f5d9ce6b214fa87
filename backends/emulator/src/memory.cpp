// What every tile holds.
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include "engine_data.hpp"

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
  for (const auto &step : engine.supersteps)
    for (std::uint32_t v : graph.computeSets[step->computeSet].vertices) {
      const VertexData &vertex = graph.vertices[v];
      TileMemory &tile = engine.memory[vertex.tile];
      tile.vertexState += deviceStateBytes(graph, v);
      tile.edgeLists += deviceListBytes(graph, v);
      if (code.insert({vertex.tile, vertex.type}).second)
        tile.code += vertex.type->codeBytes;
    }
}

/// Buffers live during one step: the largest step counts. Code stays: all steps count.
void addExchanges(EngineData &engine) {
  const std::uint32_t perFragment = engine.graph->target.getEmulatorModel().fragmentCodeBytes;
  std::vector<std::uint64_t> live(engine.memory.size());
  for (const auto &step : engine.supersteps) {
    std::vector<std::uint64_t> now(engine.memory.size());
    for (const TileTraffic &t : step->gather.tiles)
      now[t.tile] += t.received + t.linkReceived;
    for (const TileTraffic &t : step->scatter.tiles)
      now[t.tile] += t.sent;
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

/// The three variables that take most of a tile.
std::string biggestVariables(const GraphData &graph, unsigned tile) {
  std::vector<std::pair<std::uint64_t, std::string>> held;
  for (const Variable &v : graph.variables) {
    std::uint64_t bytes = 0;
    for (const Piece &p : v.tiles.pieces())
      if (p.tile == tile)
        bytes += std::uint64_t(p.end - p.begin) * v.type.size();
    if (bytes)
      held.emplace_back(bytes, v.name);
  }
  std::stable_sort(held.begin(), held.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  std::ostringstream text;
  for (std::size_t i = 0; i < held.size() && i < 3; ++i)
    text << (i ? ", " : "") << held[i].second << " (" << held[i].first << " bytes)";
  return text.str();
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
  const auto worst = std::max_element(engine.memory.begin(), engine.memory.end(),
                                      [](const TileMemory &a, const TileMemory &b) { return a.total() < b.total(); });
  const std::uint64_t available = target.getBytesPerTile();
  if (worst->total() <= available)
    return;
  const unsigned tile = unsigned(worst - engine.memory.begin());
  const auto over = std::count_if(engine.memory.begin(), engine.memory.end(), [&](const TileMemory &t) { return t.total() > available; });
  std::ostringstream text;
  text << "out of memory on tile " << tile << ": " << worst->total() << " bytes needed, " << available << " bytes available ("
       << worst->variables << " variables, " << worst->constants << " constants, " << worst->vertexState + worst->edgeLists << " vertices, "
       << worst->code + worst->controlCode << " code, " << worst->stack << " stack, " << worst->exchangeBuffers << " exchange buffers, "
       << worst->exchangeCode << " exchange code; " << over << " tiles need too much); its biggest variables: "
       << biggestVariables(*engine.graph, tile);
  throw graph_memory_allocation_error(text.str(), tile, worst->total(), available);
}

} // namespace poplar::core
