// The profile as JSON.
#include <poplar/EmulatorProfile.hpp>

#include <cstdio>
#include <sstream>

#include "json_text.hpp"

namespace poplar {

namespace {

using core::quoted;

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}
std::string number(std::uint64_t value) { return std::to_string(value); }
std::string number(unsigned value) { return std::to_string(value); }

/// The members of one object, in order.
class Object {
public:
  template <class T> Object &add(const char *name, const T &value) { return raw(name, number(value)); }
  Object &text(const char *name, const std::string &value) { return raw(name, quoted(value)); }
  Object &raw(const char *name, const std::string &value) {
    out_ << (first_ ? "{" : ", ") << '"' << name << "\": " << value;
    first_ = false;
    return *this;
  }
  std::string str() const { return out_.str() + "}"; }

private:
  std::ostringstream out_;
  bool first_ = true;
};

template <class List, class F> std::string array(const List &values, F &&text) {
  std::string result = "[";
  for (std::size_t i = 0; i < values.size(); ++i)
    (result += i ? ", " : "") += text(values[i]);
  return result + "]";
}

template <class T> std::string numbers(const std::vector<T> &values) {
  return array(values, [](const T &v) { return number(v); });
}

std::string stepJson(const StepProfile &s) {
  return Object()
      .text("name", s.name)
      .text("kind", s.kind)
      .add("executions", s.executions)
      .add("vertices", s.vertices)
      .add("cycles", s.cycles())
      .add("compute_cycles_busiest", s.computeCyclesBusiest)
      .add("compute_cycles_sum", s.computeCyclesSum)
      .add("sync_cycles", s.syncCycles)
      .add("exchange_cycles", s.exchangeCycles)
      .add("link_cycles", s.linkCycles)
      .add("control_cycles", s.controlCycles)
      .add("remote_cycles", s.remoteCycles)
      .add("host_cycles", s.hostCycles)
      .add("host_cycles_beside", s.hostCyclesBeside)
      .add("bytes_within_ipus", s.bytesWithinIpus)
      .add("bytes_between_ipus", s.bytesBetweenIpus)
      .add("bytes_host", s.bytesHost)
      .add("bytes_remote", s.bytesRemote)
      .add("fragments", s.fragments)
      .add("host_seconds", s.hostSeconds)
      .raw("estimated", array(s.estimated, quoted))
      .str();
}

std::string memoryJson(const std::vector<TileMemory> &memory) {
  Object object;
  const auto add = [&](const char *name, std::uint64_t TileMemory::*field) {
    object.raw(name, array(memory, [&](const TileMemory &t) { return number(t.*field); }));
  };
  add("variables", &TileMemory::variables);
  add("constants", &TileMemory::constants);
  add("vertex_state", &TileMemory::vertexState);
  add("edge_lists", &TileMemory::edgeLists);
  add("code", &TileMemory::code);
  add("control_code", &TileMemory::controlCode);
  add("stack", &TileMemory::stack);
  add("exchange_buffers", &TileMemory::exchangeBuffers);
  add("exchange_code", &TileMemory::exchangeCode);
  object.raw("total", array(memory, [](const TileMemory &t) { return number(t.total()); }));
  return object.str();
}

/// Live variables at the peak of each tile.
std::string peakJson(const std::vector<TileMemory> &memory) {
  const auto all = [&](const auto &value) { return array(memory, [&](const TileMemory &t) { return number(value(t)); }); };
  return Object()
      .raw("always_variables", all([](const TileMemory &t) { return t.alwaysVariables; }))
      .raw("variables", all([](const TileMemory &t) { return t.peakVariables; }))
      .raw("exchange_buffers", all([](const TileMemory &t) { return t.peakExchangeBuffers; }))
      .raw("total", all([](const TileMemory &t) { return t.peak(); }))
      .raw("point", all([](const TileMemory &t) { return t.peakPoint; }))
      .str();
}

std::string pointJson(const MemoryPoint &p) {
  return Object()
      .add("program", p.program)
      .text("name", p.name)
      .add("variables", p.variables)
      .add("exchange_buffers", p.exchangeBuffers)
      .add("bytes", p.bytes)
      .add("fullest_tile", p.fullestTile)
      .add("variables_of_all", p.variablesOfAll)
      .add("exchange_buffers_of_all", p.exchangeBuffersOfAll)
      .str();
}

} // namespace

std::string EmulatorProfile::toJson() const {
  Object tilesObject;
  tilesObject.raw("compute_cycles", numbers(computeCycles))
      .raw("bytes_received", numbers(bytesReceived))
      .raw("bytes_sent", numbers(bytesSent))
      .raw("link_bytes_received", numbers(linkBytesReceived))
      .raw("link_bytes_sent", numbers(linkBytesSent))
      .raw("memory", memoryJson(memory))
      .raw("peak", peakJson(memory));
  return Object()
      .add("tiles", tiles)
      .add("ipus", ipus)
      .add("bytes_per_tile", bytesPerTile)
      .add("clock_hz", clockHz)
      .raw("graph", Object().add("compute_sets", computeSets).add("variables", variables).add("vertices", vertices).add("edges", edges).str())
      .add("cycles_last_run", cyclesLastRun)
      .add("cycles", cycles)
      .add("host_cycles", hostCycles)
      .add("host_cycles_last_run", hostCyclesLastRun)
      .add("host_cycles_beside", hostCyclesBeside)
      .add("host_cycles_beside_last_run", hostCyclesBesideLastRun)
      .raw("remote_memory", numbers(remoteMemory))
      .raw("steps", array(steps, stepJson))
      .add("fullest_tile", busiestMemoryTile())
      .raw("memory_over_time", array(memoryOverTime, pointJson))
      .raw("per_tile", tilesObject.str())
      .str();
}

} // namespace poplar
