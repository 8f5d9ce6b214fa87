// The profile as data, as JSON and as a readable summary.
#include <poplar/EmulatorProfile.hpp>

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "engine_data.hpp"

namespace poplar {

TileMemory EmulatorProfile::totalMemory() const {
  TileMemory sum;
  for (const TileMemory &t : memory) {
    sum.variables += t.variables;
    sum.constants += t.constants;
    sum.vertexState += t.vertexState;
    sum.edgeLists += t.edgeLists;
    sum.code += t.code;
    sum.controlCode += t.controlCode;
    sum.stack += t.stack;
    sum.exchangeBuffers += t.exchangeBuffers;
    sum.exchangeCode += t.exchangeCode;
    sum.alwaysVariables += t.alwaysVariables;
    sum.peakVariables += t.peakVariables;
    sum.peakExchangeBuffers += t.peakExchangeBuffers;
  }
  return sum;
}

unsigned EmulatorProfile::busiestMemoryTile() const {
  const auto most = std::max_element(memory.begin(), memory.end(), [](const TileMemory &a, const TileMemory &b) { return a.peak() < b.peak(); });
  return unsigned(most - memory.begin());
}

namespace core {

namespace {

void addExchange(const Target &target, const Exchange &exchange, std::uint64_t executions, StepProfile &step, EmulatorProfile &profile) {
  const double n = double(executions);
  step.syncCycles += n * syncCyclesOf(target, exchange);
  step.exchangeCycles += n * exchange.cycles;
  step.linkCycles += n * exchange.linkCycles;
  step.bytesWithinIpus += executions * exchange.bytesWithin;
  step.bytesBetweenIpus += executions * exchange.bytesBetween;
  step.fragments += executions * exchange.fragments;
  for (const TileTraffic &t : exchange.tiles) {
    profile.bytesReceived[t.tile] += executions * t.received;
    profile.bytesSent[t.tile] += executions * t.sent;
    profile.linkBytesReceived[t.tile] += executions * t.linkReceived;
    profile.linkBytesSent[t.tile] += executions * t.linkSent;
  }
}

StepProfile superstepProfile(const Target &target, const Superstep &s, EmulatorProfile &profile) {
  StepProfile step;
  step.name = s.name;
  step.kind = "execute";
  step.executions = s.executions;
  step.vertices = s.calls.size();
  step.computeCyclesBusiest = s.busiestCycles;
  step.computeCyclesSum = s.sumCycles;
  step.controlCycles = double(s.executions) * target.getEmulatorModel().controlCycles;
  for (std::size_t i = 0; i < s.estimated.size(); ++i)
    if (s.guessed[i])
      step.estimated.push_back(s.estimated[i]);
  step.hostSeconds = s.hostSeconds;
  addExchange(target, s.gather, s.executions, step, profile);
  addExchange(target, s.scatter, s.executions, step, profile);
  for (std::size_t g = 0; g < s.groups.size(); ++g)
    profile.computeCycles[s.groups[g].tile] += s.groupCycles[g];
  return step;
}

} // namespace

EmulatorProfile collectProfile(const EngineData &engine) {
  const Target &target = engine.graph->target;
  EmulatorProfile profile;
  profile.tiles = target.getNumTiles();
  profile.ipus = target.getNumIPUs();
  profile.bytesPerTile = target.getBytesPerTile();
  profile.clockHz = target.getTileClockFrequency();
  profile.computeSets = engine.graph->computeSets.size();
  profile.variables = engine.graph->variables.size();
  profile.vertices = engine.graph->vertices.size();
  for (const VertexData &v : engine.graph->vertices)
    profile.edges += v.edges.size();
  profile.cyclesLastRun = engine.runCycles;
  profile.cycles = engine.totalCycles;
  profile.hostCycles = engine.hostCycles;
  profile.hostCyclesLastRun = engine.transfers.lastRun;
  profile.hostCyclesBeside = engine.transfers.beside;
  profile.hostCyclesBesideLastRun = engine.transfers.besideLastRun;
  profile.memory = engine.memory;
  profile.memoryOverTime = engine.memoryOverTime;
  profile.computeCycles.resize(profile.tiles);
  for (auto *values : {&profile.bytesReceived, &profile.bytesSent, &profile.linkBytesReceived, &profile.linkBytesSent})
    values->resize(profile.tiles);
  for (const auto &s : engine.supersteps)
    profile.steps.push_back(superstepProfile(target, *s, profile));
  for (const CopyStep &c : engine.copies) {
    StepProfile step;
    step.name = c.name;
    step.kind = "copy";
    step.executions = c.executions;
    step.computeCyclesBusiest = double(c.executions) * c.localCycles;
    step.controlCycles = double(c.executions) * target.getEmulatorModel().controlCycles;
    addExchange(target, c.exchange, c.executions, step, profile);
    profile.steps.push_back(step);
  }
  for (const StreamStep &s : engine.streamSteps) {
    StepProfile step;
    step.name = s.name;
    step.kind = "stream";
    step.executions = s.executions;
    step.bytesHost = s.executions * s.bytes;
    step.hostCycles = s.cycles;
    step.hostCyclesBeside = s.besideCycles;
    profile.steps.push_back(step);
  }
  for (const RemoteStep &r : engine.remoteSteps) {
    StepProfile step;
    step.name = r.name;
    step.kind = "remote";
    step.executions = r.executions;
    step.bytesRemote = r.executions * r.rowBytes * r.moves.size();
    step.syncCycles = double(r.executions) * remoteSyncCycles(target);
    step.remoteCycles = double(r.executions) * r.transferCycles;
    step.controlCycles = double(r.executions) * target.getEmulatorModel().controlCycles;
    for (const auto &[tile, fragments] : r.fragments)
      step.fragments += r.executions * fragments;
    profile.steps.push_back(step);
  }
  profile.remoteMemory = remoteBytes(engine);
  if (engine.controls) {
    StepProfile step;
    step.name = "decisions and barriers";
    step.kind = "control";
    step.executions = engine.controls;
    step.controlCycles = engine.controlCycles;
    profile.steps.push_back(step);
  }
  return profile;
}

namespace {

std::string share(std::uint64_t part, std::uint64_t whole) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << (whole ? 100.0 * double(part) / double(whole) : 0.0) << " %";
  return text.str();
}

void printMemory(std::ostream &os, const EmulatorProfile &p) {
  const TileMemory all = p.totalMemory();
  const unsigned tile = p.busiestMemoryTile();
  const TileMemory &most = p.memory[tile];
  os << "Memory (bytes)" << std::setw(26) << "all tiles" << std::setw(16) << "tile " + std::to_string(tile) << "\n";
  const auto line = [&](const char *name, std::uint64_t total, std::uint64_t one) {
    os << "  " << std::left << std::setw(22) << name << std::right << std::setw(16) << total << std::setw(16) << one << "\n";
  };
  line("variables", all.variables, most.variables);
  line("constants", all.constants, most.constants);
  line("vertex state", all.vertexState, most.vertexState);
  line("edge lists", all.edgeLists, most.edgeLists);
  line("codelets", all.code, most.code);
  line("control code", all.controlCode, most.controlCode);
  line("stack", all.stack, most.stack);
  line("exchange buffers", all.exchangeBuffers, most.exchangeBuffers);
  line("exchange code", all.exchangeCode, most.exchangeCode);
  line("all that exists", all.total(), most.total());
  line("variables live always", all.alwaysVariables, most.alwaysVariables);
  line("variables at the peak", all.peakVariables, most.peakVariables);
  line("buffers at the peak", all.peakExchangeBuffers, most.peakExchangeBuffers);
  line("peak", all.peak(), most.peak());
  os << "  available on a tile: " << p.bytesPerTile << ", used on the fullest: " << share(most.peak(), p.bytesPerTile);
  if (!p.memoryOverTime.empty())
    os << ", in '" << p.memoryOverTime[most.peakPoint].name << "'";
  os << "\n\n";
}

void printSteps(std::ostream &os, const EmulatorProfile &p) {
  os << "Execution (tile cycles)\n  " << std::left << std::setw(34) << "step" << std::right << std::setw(8) << "runs" << std::setw(14)
     << "compute" << std::setw(12) << "sync" << std::setw(12) << "exchange" << std::setw(12) << "links" << std::setw(12) << "control"
     << std::setw(14) << "bytes" << std::setw(12) << "inter-IPU" << "\n";
  for (const StepProfile &s : p.steps) {
    os << "  " << std::left << std::setw(34) << s.kind + " " + s.name << std::right << std::setw(8) << s.executions << std::setw(14)
       << std::uint64_t(s.computeCyclesBusiest) << std::setw(12) << std::uint64_t(s.syncCycles) << std::setw(12)
       << std::uint64_t(s.exchangeCycles) << std::setw(12) << std::uint64_t(s.linkCycles + s.remoteCycles) << std::setw(12) << std::uint64_t(s.controlCycles)
       << std::setw(14) << s.bytesWithinIpus + s.bytesHost + s.bytesRemote << std::setw(12) << s.bytesBetweenIpus << "\n";
    for (const std::string &name : s.estimated)
      os << "      cycles of " << name << " are estimated from its bytes\n";
  }
}

} // namespace

void printSummary(std::ostream &os, const EngineData &engine, const EmulatorProfile &p) {
  os << "Target: " << engine.graph->target.getTargetArchString() << ", " << p.ipus << " IPU, " << p.tiles << " tiles, clock "
     << p.clockHz / 1e9 << " GHz (emulated)\n"
     << "Graph: " << engine.graph->variables.size() << " variables, " << engine.graph->vertices.size() << " vertices, "
     << engine.supersteps.size() << " compute sets, " << engine.copies.size() << " copies\n\nMemory Usage:\n";
  printMemory(os, p);
  for (std::size_t ipu = 0; ipu < p.remoteMemory.size(); ++ipu)
    if (p.remoteMemory[ipu])
      os << "Streaming memory of IPU " << ipu << ": " << p.remoteMemory[ipu] << " bytes (the column \"links\" tells the cycles of its copies)\n\n";
  printSteps(os, p);
  os << "  total: " << std::uint64_t(p.cycles) << " cycles, " << p.cycles / p.clockHz * 1e6 << " microseconds; last run "
     << std::uint64_t(p.cyclesLastRun) << "; host transfers " << std::uint64_t(p.hostCycles) << " (not included), "
     << std::uint64_t(p.hostCyclesBeside) << " of them beside the program\n";
}

} // namespace core
} // namespace poplar
