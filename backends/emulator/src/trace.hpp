// Start and end of each program of a run, for execution reports.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <poplar/OptionFlags.hpp>

namespace poplar::core {

struct TraceEntry {
  std::uint32_t op;
  /// Device cycles since the engine was made.
  double from, to;
};

/// One run of a program.
struct TraceRun {
  std::uint32_t program;
  std::string name;
  std::vector<TraceEntry> entries;
};

/// The recorded runs; programs beyond `most` are not recorded.
struct Trace {
  static constexpr std::size_t most = 1 << 20;
  std::vector<TraceRun> runs;
  std::size_t entries = 0;
  /// Regular expressions of profiler.blocks.filter and profiler.programs.filter: the named sequences, and the other programs, that are blocks.
  std::string sequences = ".*", programs = "^$";
};

/// Empty if no option requests an execution report.
std::unique_ptr<Trace> traceOf(const OptionFlags &options);

} // namespace poplar::core
