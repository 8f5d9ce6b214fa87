// Copies between replicas.
#include <poplar/CycleCount.hpp>
#include <poplar/exceptions.hpp>

#include <cmath>
#include <cstring>
#include <set>

#include "engine_data.hpp"

namespace poplar {

namespace core {

void runCrossing(EngineData &engine, std::uint32_t crossing) {
  const CrossStep &first = engine.crossings[crossing];
  std::set<unsigned> senders, receivers;
  for (const auto &[from, to] : first.replicas) {
    senders.insert(from);
    receivers.insert(to);
  }
  if (senders.size() != engine.replicas.size() || receivers != senders || *senders.rbegin() != engine.replicas.size() - 1)
    throw graph_replication_error(first.name + ": every one of the " + std::to_string(engine.replicas.size()) +
                                  " replicas must send to one and receive from one");
  for (EngineData *replica : engine.replicas) {
    CrossStep &step = replica->crossings[crossing];
    runMoves(step.toBuffer, step.elementBytes);
  }
  const std::size_t bytes = first.buffer.size();
  std::vector<std::vector<char>> sent;
  for (EngineData *replica : engine.replicas) {
    const char *data = replica->crossings[crossing].buffer.data();
    sent.emplace_back(data, data + bytes);
  }
  for (const auto &[from, to] : first.replicas) {
    CrossStep &step = engine.replicas[to]->crossings[crossing];
    std::memcpy(step.buffer.data(), sent[from].data(), bytes);
    runMoves(step.fromBuffer, step.elementBytes);
    ++step.executions;
    spend(*engine.replicas[to], step.cycles, true);
  }
}

void requireEqual(EngineData &engine, std::uint32_t crossing) {
  const CrossStep &first = engine.crossings[crossing];
  for (EngineData *replica : engine.replicas) {
    CrossStep &step = replica->crossings[crossing];
    runMoves(step.toBuffer, step.elementBytes);
    if (step.buffer.size() && std::memcmp(step.buffer.data(), first.buffer.data(), step.buffer.size()) != 0)
      throw graph_replication_error(first.name + " is not equal in replicas 0 and " + std::to_string(replica->replica));
  }
}

} // namespace core

namespace {

program::Program stamp(const Tensor &to, const Tensor &since) {
  auto data = std::make_shared<core::ProgramData>();
  data->kind = core::ProgramKind::CycleStamp;
  data->destination = to;
  data->source = since;
  return program::Program(data);
}

Tensor counter(Graph &graph, unsigned tile, const DebugContext &context) {
  const Tensor tensor = graph.addVariable(UNSIGNED_INT, {2}, DebugContext(context, "cycles"));
  graph.setTileMapping(tensor, tile);
  return tensor;
}

} // namespace

Tensor cycleStamp(Graph &graph, program::Sequence &prog, unsigned tile, SyncType type, const DebugContext &context) {
  const Tensor result = counter(graph, tile, context);
  prog.add(program::Sync(type));
  prog.add(stamp(result, {}));
  return result;
}

Tensor cycleCount(Graph &graph, program::Sequence &prog, unsigned tile, SyncType type, const DebugContext &context) {
  const Tensor begin = counter(graph, tile, context), result = counter(graph, tile, context);
  program::Sequence timed;
  timed.add(program::Sync(type));
  timed.add(stamp(begin, {}));
  timed.add(prog);
  timed.add(program::Sync(type));
  timed.add(stamp(result, begin));
  prog = timed;
  return result;
}

} // namespace poplar
