// The interpreter of operations.
#include <poplar/exceptions.hpp>

#include <cmath>
#include <cstring>
#include <ostream>

#include "engine_data.hpp"

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

/// A decision that all tiles wait for.
std::int64_t decide(EngineData &engine, const Op &op) {
  const Target &target = engine.graph->target;
  const EmulatorModel &model = target.getEmulatorModel();
  const double sync = target.getNumIPUs() > 1 ? model.globalSyncCycles : model.syncCycles;
  const double cycles = target.getTargetType() == TargetType::CPU ? 0 : sync + model.exchangeSetupCycles + model.controlCycles;
  engine.runCycles += cycles;
  engine.controlCycles += cycles;
  ++engine.controls;
  return readPredicate(op);
}

double exchangeTotal(const Target &target, const Exchange &exchange) {
  return syncCyclesOf(target, exchange) + exchange.cycles + exchange.linkCycles;
}

void runSuperstep(EngineData &engine, Superstep &step) {
  const Target &target = engine.graph->target;
  const double compute = engine.executor.run(step);
  engine.runCycles +=
      compute + target.getEmulatorModel().controlCycles + exchangeTotal(target, step.gather) + exchangeTotal(target, step.scatter);
}

void runCopy(EngineData &engine, CopyStep &step) {
  const Target &target = engine.graph->target;
  runMoves(step.moves, step.elementBytes);
  runMoves(step.secondMoves, step.elementBytes);
  ++step.executions;
  engine.runCycles += step.localCycles + target.getEmulatorModel().controlCycles + exchangeTotal(target, step.exchange);
}

void runStream(EngineData &engine, StreamStep &step) {
  StreamConnection &to = engine.connections[step.stream];
  if (!to.callback && !to.begin)
    throw stream_connection_error(step.name + " is not connected");
  char *data = step.buffer.data();
  if (!step.toDevice)
    runMoves(step.moves, step.elementBytes);
  if (to.callback) {
    (*to.callback)(data);
  } else {
    (step.toDevice ? std::memcpy(data, to.next, step.bytes) : std::memcpy(to.next, data, step.bytes));
    to.next += to.fixed ? 0 : step.bytes;
    if (to.next == to.end)
      to.next = to.begin;
  }
  if (step.toDevice)
    runMoves(step.moves, step.elementBytes);
  ++step.executions;
  const Target &target = engine.graph->target;
  engine.hostCycles += std::ceil(double(step.bytes) * target.getTileClockFrequency() / target.getEmulatorModel().hostBytesPerSecond);
}

void runSwitch(EngineData &engine, const Op &op) {
  const std::int64_t value = decide(engine, op);
  for (std::size_t i = 0; i < op.cases.size(); ++i)
    if (op.cases[i] == value)
      return runOp(engine, op.children[i]);
  if (op.hasDefault)
    runOp(engine, op.children.back());
}

void runWhile(EngineData &engine, const Op &op, bool wanted) {
  while (true) {
    runOp(engine, op.children[0]);
    if ((decide(engine, op) != 0) != wanted)
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
  engine.runCycles += cycles;
  engine.controlCycles += cycles;
  ++engine.controls;
}

void runPrint(EngineData &engine, const PrintStep &print) {
  runMoves(print.moves, std::uint32_t(print.type.size()));
  printTensor(*engine.printStream, print);
}

} // namespace

void runOp(EngineData &engine, std::uint32_t number) {
  const Op &op = engine.ops[number];
  switch (op.kind) {
  case ProgramKind::Sequence:
  case ProgramKind::Call:
    for (std::uint32_t child : op.children)
      runOp(engine, child);
    return;
  case ProgramKind::Execute:
    return runSuperstep(engine, *engine.supersteps[op.number]);
  case ProgramKind::Repeat:
    for (std::uint32_t i = 0; i < op.number; ++i)
      runOp(engine, op.children[0]);
    return;
  case ProgramKind::WhileTrue:
  case ProgramKind::WhileFalse:
    return runWhile(engine, op, op.kind == ProgramKind::WhileTrue);
  case ProgramKind::If:
    return runOp(engine, op.children[decide(engine, op) ? 0 : 1]);
  case ProgramKind::Switch:
    return runSwitch(engine, op);
  case ProgramKind::Copy:
    return runCopy(engine, engine.copies[op.number]);
  case ProgramKind::StreamIn:
  case ProgramKind::StreamOut:
    return runStream(engine, engine.streamSteps[op.number]);
  case ProgramKind::RemoteIn:
  case ProgramKind::RemoteOut:
    return runRemote(engine, engine.remoteSteps[op.number]);
  case ProgramKind::WriteUndef:
    return;
  case ProgramKind::Sync:
    return runSync(engine, op.number != 0);
  case ProgramKind::Print:
    return runPrint(engine, engine.prints[op.number]);
  case ProgramKind::AbortIf:
    if (decide(engine, op))
      abortRun(op);
    return;
  case ProgramKind::Abort:
    abortRun(op);
  }
}

} // namespace poplar::core
