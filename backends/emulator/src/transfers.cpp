#include "transfers.hpp"

#include <algorithm>

#include "engine_data.hpp"

namespace poplar::core {

namespace {

/// Calls f(tile) for the tiles that contain elements of a tensor.
template <class F> void eachTile(const GraphData &graph, const Tensor &tensor, F &&f) {
  if (!tensor.valid() || tensor.numElements() == 0)
    return;
  for (const Block &block : blocksOf(tensor.data().view))
    forEachInterval(block, [&](Index begin, Index end) {
      forEachTile(graph, block.var, begin, end, [] { return std::string("a copy"); }, [&](Index, Index, std::uint32_t tile) { f(tile); });
    });
}

/// Tiles of `exchange` that are among `those`, or on other IPUs, which wait for all tiles.
bool meets(const Exchange &exchange, const std::vector<bool> &those) {
  return exchange.bytesBetween > 0 || std::any_of(exchange.tiles.begin(), exchange.tiles.end(), [&](const TileTraffic &t) { return those[t.tile]; });
}

} // namespace

void planTransfers(EngineData &engine) {
  const GraphData &graph = *engine.graph;
  std::vector<bool> computing(graph.target.getNumTiles()), waiting(computing.size());
  for (const VertexData &vertex : graph.vertices)
    if (vertex.tile < computing.size())
      computing[vertex.tile] = true;
  const auto isStream = [](const Op &op) { return op.kind == ProgramKind::StreamIn || op.kind == ProgramKind::StreamOut; };
  for (const Op &op : engine.ops) {
    if (!isStream(op) || graph.target.getTargetType() == TargetType::CPU)
      continue;
    const Tensor &tensor = op.kind == ProgramKind::StreamIn ? op.destination : op.source;
    bool apart = true;
    eachTile(graph, tensor, [&](std::uint32_t tile) { apart = apart && !computing[tile]; });
    engine.streamSteps[op.number].beside = apart;
    if (apart)
      eachTile(graph, tensor, [&](std::uint32_t tile) { waiting[tile] = true; });
  }
  for (const auto &step : engine.supersteps)
    step->waits = meets(step->gather, waiting) || meets(step->scatter, waiting);
  for (const Op &op : engine.ops)
    if (op.kind == ProgramKind::Copy) {
      CopyStep &copy = engine.copies[op.number];
      copy.waits = meets(copy.exchange, waiting);
      for (const Tensor *tensor : {&op.source, &op.destination})
        eachTile(graph, *tensor, [&](std::uint32_t tile) { copy.waits = copy.waits || waiting[tile]; });
    }
}

void beginTransfer(EngineData &engine, std::uint32_t step, double cycles) {
  StreamStep &stream = engine.streamSteps[step];
  if (!stream.beside)
    awaitTransfers(engine);
  else
    engine.transfers.open.push_back({step, cycles});
  engine.hostCycles += cycles;
  engine.transfers.lastRun += cycles;
  stream.cycles += cycles;
}

void spend(EngineData &engine, double cycles, bool waits) {
  if (waits)
    awaitTransfers(engine);
  engine.runCycles += cycles;
  std::vector<Transfers::Open> &open = engine.transfers.open;
  std::size_t done = 0;
  for (double left = cycles; done < open.size() && left > 0; done += open[done].cycles <= 0) {
    const double part = std::min(left, open[done].cycles);
    open[done].cycles -= part;
    left -= part;
    engine.streamSteps[open[done].step].besideCycles += part;
    engine.transfers.beside += part;
    engine.transfers.besideLastRun += part;
  }
  open.erase(open.begin(), open.begin() + std::ptrdiff_t(done));
}

void awaitTransfers(EngineData &engine) { engine.transfers.open.clear(); }

} // namespace poplar::core
