// The interpreter of operations.
#include <poplar/exceptions.hpp>

#include <cmath>
#include <cstring>
#include <ostream>
#include <sstream>

#include "engine_data.hpp"
#include "spoil.hpp"

namespace poplar::core {

double syncCyclesOf(const Target &target, const Exchange &exchange) {
  if (exchange.empty())
    return 0;
  const EmulatorModel &model = target.getEmulatorModel();
  return (exchange.bytesBetween ? model.globalSyncCycles : model.syncCycles) + model.exchangeSetupCycles;
}

namespace {

std::int64_t readPredicate(const Op &op) {
  if (op.predicateType == BOOL)
    return *op.predicate != 0;
  std::int32_t value;
  std::memcpy(&value, op.predicate, sizeof value);
  return value;
}

/// Returns the value on which a decision depends; throws graph_replication_error unless all replicas read the same value.
std::int64_t agreed(const EngineData &engine, std::uint32_t number, std::int64_t value) {
  for (const EngineData *replica : engine.replicas)
    if (readPredicate(replica->ops[number]) != value)
      throw graph_replication_error("replicas disagree: a decision of the program is " + std::to_string(value) + " on replica 0 and " +
                                    std::to_string(readPredicate(replica->ops[number])) + " on replica " + std::to_string(replica->replica));
  return value;
}

/// A decision that all tiles wait for.
std::int64_t decide(EngineData &engine, std::uint32_t number) {
  const Op &op = engine.ops[number];
  for (const EngineData *replica : engine.replicas)
    if (replica->undefined)
      replica->undefined->require(replica->touched.at(number).first, [] { return std::string("a decision of the program"); });
  const Target &target = engine.graph->target;
  const EmulatorModel &model = target.getEmulatorModel();
  const double sync = target.getNumIPUs() > 1 ? model.globalSyncCycles : model.syncCycles;
  const double cycles = target.getTargetType() == TargetType::CPU ? 0 : sync + model.exchangeSetupCycles + model.controlCycles;
  for (EngineData *replica : engine.replicas)
    awaitTransfers(*replica);
  engine.runCycles += cycles;
  engine.controlCycles += cycles;
  ++engine.controls;
  return agreed(engine, number, readPredicate(op));
}

double exchangeTotal(const Target &target, const Exchange &exchange) {
  return syncCyclesOf(target, exchange) + exchange.cycles + exchange.linkCycles;
}

void runSuperstep(EngineData &engine, Superstep &step) {
  const Target &target = engine.graph->target;
  const double compute = engine.executor.run(step);
  spend(engine, compute + target.getEmulatorModel().controlCycles + exchangeTotal(target, step.gather) + exchangeTotal(target, step.scatter),
        step.waits);
}

void runCopy(EngineData &engine, CopyStep &step) {
  const Target &target = engine.graph->target;
  runMoves(step.moves, step.elementBytes);
  runMoves(step.secondMoves, step.elementBytes);
  ++step.executions;
  spend(engine, step.localCycles + target.getEmulatorModel().controlCycles + exchangeTotal(target, step.exchange), step.waits);
}

/// Transfers between the host and the buffer of one replica. Replicas share a connection and take turns.
void moveHost(EngineData &engine, StreamStep &step, StreamConnection &to) {
  char *data = step.buffer.data();
  const auto own = to.byReplica.find(engine.replica);
  StreamCallbackHandle *callback = own != to.byReplica.end() ? &own->second : to.callback ? &*to.callback : nullptr;
  if (callback) {
    (*callback)(data, step.bytes);
    if (step.toDevice && engine.prefetch != Prefetch::Never)
      callback->prefetch(step.bytes, engine.prefetch == Prefetch::OnThread);
  } else {
    (step.toDevice ? std::memcpy(data, to.next, step.bytes) : std::memcpy(to.next, data, step.bytes));
    to.next += to.fixed ? 0 : step.bytes;
    if (to.next == to.end)
      to.next = to.begin;
  }
}

void runStream(EngineData &engine, StreamStep &step, std::uint32_t number) {
  EngineData &first = *engine.replicas[0];
  StreamConnection &to = first.connections[step.stream];
  if (!to.callback && !to.begin && to.byReplica.count(engine.replica) == 0)
    throw stream_connection_error(step.name + " is not connected");
  if (!step.toDevice)
    runMoves(step.moves, step.elementBytes);
  if (engine.graph->streams[step.stream].broadcast && engine.replica > 0)
    std::memcpy(step.buffer.data(), first.streamSteps[number].buffer.data(), step.bytes);
  else
    moveHost(engine, step, to);
  if (step.toDevice)
    runMoves(step.moves, step.elementBytes);
  ++step.executions;
  const Target &target = engine.graph->target;
  beginTransfer(engine, number, std::ceil(double(step.bytes) * target.getTileClockFrequency() / target.getEmulatorModel().hostBytesPerSecond));
}

void runSwitch(EngineData &engine, const Op &op, std::uint32_t number) {
  const std::int64_t value = decide(engine, number);
  for (std::size_t i = 0; i < op.cases.size(); ++i)
    if (op.cases[i] == value)
      return runOp(engine, op.children[i]);
  if (op.hasDefault)
    runOp(engine, op.children.back());
}

void runWhile(EngineData &engine, const Op &op, std::uint32_t number, bool wanted) {
  while (true) {
    runOp(engine, op.children[0]);
    if ((decide(engine, number) != 0) != wanted)
      return;
    runOp(engine, op.children[1]);
  }
}

[[noreturn]] void abortRun(const Op &op) {
  throw application_runtime_error(op.message.empty() ? "the program aborted" : op.message);
}

void runSync(EngineData &engine, bool external) {
  const EmulatorModel &model = engine.graph->target.getEmulatorModel();
  const double cycles = external ? model.globalSyncCycles : model.syncCycles;
  spend(engine, cycles, external);
  engine.controlCycles += cycles;
  ++engine.controls;
}

void runPrint(EngineData &engine, const PrintStep &print) {
  awaitTransfers(engine);
  runMoves(print.moves, std::uint32_t(print.type.size()));
  printTensor(*engine.replicas[0]->printStream, print);
}

[[noreturn]] void failWith(EngineData &engine, const Op &op) {
  const PrintStep &print = engine.prints[op.number];
  runMoves(print.moves, std::uint32_t(print.type.size()));
  std::ostringstream text;
  printTensor(text, print);
  throw application_runtime_error(text.str());
}

void stampCycles(EngineData &engine, const Op &op) {
  std::uint64_t now = std::uint64_t(engine.totalCycles + engine.runCycles), since = 0;
  if (op.since)
    std::memcpy(&since, op.since, sizeof since);
  now -= since;
  std::memcpy(op.stamp, &now, sizeof now);
}

/// Tracks the elements that one operation reads and writes.
void followDefined(EngineData &engine, std::uint32_t number, bool before) {
  UndefinedElements &elements = *engine.undefined;
  const Op &op = engine.ops[number];
  const auto &[source, destination] = engine.touched.at(number);
  const auto user = [&] { return op.message.empty() ? std::string("the program") : "'" + op.message + "'"; };
  if (op.kind == ProgramKind::Execute) {
    const Superstep &step = *engine.supersteps[op.number];
    return before ? elements.beforeStep(step) : elements.afterStep(step);
  }
  if (op.kind == ProgramKind::Copy)
    return before ? void() : elements.copy(source, destination);
  // Streaming memory stores rings completely, even if only a part was written.
  if (op.kind == ProgramKind::RemoteOut)
    return;
  if (before)
    return elements.require(source, user);
  op.kind == ProgramKind::WriteUndef ? elements.undefine(destination) : elements.define(destination);
}

/// Elements that are undefined on one replica are undefined at the copy's destination.
void followCrossing(EngineData &engine, std::uint32_t number) {
  if (!engine.undefined)
    return;
  std::vector<std::vector<bool>> sent;
  for (const EngineData *replica : engine.replicas)
    sent.push_back(replica->undefined->statesOf(replica->touched.at(number).first));
  for (const auto &[from, to] : engine.crossings[engine.ops[number].number].replicas)
    if (from < sent.size() && to < sent.size())
      engine.replicas[to]->undefined->setStates(engine.replicas[to]->touched.at(number).second, sent[from]);
}

/// Operations of one replica that do not involve others.
void runLeaf(EngineData &engine, std::uint32_t number) {
  const Op &op = engine.ops[number];
  switch (op.kind) {
  case ProgramKind::Execute:
    return runSuperstep(engine, *engine.supersteps[op.number]);
  case ProgramKind::Copy:
    return runCopy(engine, engine.copies[op.number]);
  case ProgramKind::StreamIn:
  case ProgramKind::StreamOut:
    return runStream(engine, engine.streamSteps[op.number], op.number);
  case ProgramKind::RemoteIn:
  case ProgramKind::RemoteOut:
    return runRemote(engine, engine.remoteSteps[op.number]);
  case ProgramKind::Sync:
    return runSync(engine, op.number != 0);
  case ProgramKind::Print:
    return runPrint(engine, engine.prints[op.number]);
  case ProgramKind::CycleStamp:
    return stampCycles(engine, op);
  case ProgramKind::Error:
    failWith(engine, op);
  default:
    return;
  }
}

} // namespace

namespace {

void runOne(EngineData &engine, std::uint32_t number) {
  const Op &op = engine.ops[number];
  switch (op.kind) {
  case ProgramKind::Sequence:
  case ProgramKind::Call:
    for (std::uint32_t child : op.children)
      runOp(engine, child);
    return;
  case ProgramKind::Repeat:
    for (std::uint32_t i = 0; i < op.number; ++i)
      runOp(engine, op.children[0]);
    return;
  case ProgramKind::WhileTrue:
  case ProgramKind::WhileFalse:
    return runWhile(engine, op, number, op.kind == ProgramKind::WhileTrue);
  case ProgramKind::If:
    return runOp(engine, op.children[decide(engine, number) ? 0 : 1]);
  case ProgramKind::Switch:
    return runSwitch(engine, op, number);
  case ProgramKind::AbortIf:
    if (decide(engine, number))
      abortRun(op);
    return;
  case ProgramKind::Abort:
    abortRun(op);
  case ProgramKind::CrossReplica:
    followCrossing(engine, number);
    return runCrossing(engine, op.number);
  case ProgramKind::AssumeEqual:
    return requireEqual(engine, op.number);
  default:
    for (EngineData *replica : engine.replicas) {
      if (replica->undefined)
        followDefined(*replica, number, true);
      runLeaf(*replica, number);
      if (replica->undefined)
        followDefined(*replica, number, false);
    }
  }
}

} // namespace

void runOp(EngineData &engine, std::uint32_t number) {
  const double from = engine.trace ? engine.totalCycles + engine.runCycles : 0;
  runOne(engine, number);
  if (engine.trace && !engine.trace->runs.empty() && engine.trace->entries < Trace::most) {
    engine.trace->runs.back().entries.push_back({number, from, engine.totalCycles + engine.runCycles});
    ++engine.trace->entries;
  }
  if (!engine.dying.empty())
    spoil(engine, engine.dying[number]);
}

} // namespace poplar::core
