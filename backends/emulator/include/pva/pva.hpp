// The PopVision analysis library, for profiles that the emulator wrote: the compilation of a program.
#ifndef SNNC_PVA_PVA_HPP
#define SNNC_PVA_PVA_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pva {

class Version {
public:
  std::string string() const { return "snnc emulator"; }
  unsigned major() const { return 0; }
  unsigned minor() const { return 0; }
  unsigned point() const { return 0; }
};

class Target {
public:
  std::uint64_t numTiles() const { return tiles; }
  std::uint64_t numIPUs() const { return ipus; }
  std::uint64_t bytesPerTile() const { return bytes; }
  double clockFrequency() const { return clock; }

  std::uint64_t tiles = 0, ipus = 0, bytes = 0;
  double clock = 0;
};

class Graph {
public:
  std::uint64_t numComputeSets() const { return computeSets; }
  std::uint64_t numVars() const { return variables; }
  std::uint64_t numVertices() const { return vertices; }
  std::uint64_t numEdges() const { return edges; }

  std::uint64_t computeSets = 0, variables = 0, vertices = 0, edges = 0;
};

/// Bytes of a tile. The emulator leaves no gaps between variables.
class MemoryTotal {
public:
  std::uint64_t includingGaps() const { return bytes; }
  std::uint64_t excludingGaps() const { return bytes; }

  std::uint64_t bytes = 0;
};

class TileMemory {
public:
  /// The peak memory of the tile.
  const MemoryTotal &total() const { return total_; }

  MemoryTotal total_;
};

class Tile {
public:
  const TileMemory &memory() const { return memory_; }

  TileMemory memory_;
};

/// A control program and its contents.
class Program {
public:
  enum class Type {
    Unknown, Sequence, Repeat, RepeatWhile, If, Switch, Call, OnTileExecute, DoExchange, StreamCopyBegin, StreamCopyMid, StreamCopyEnd,
    RemoteCopy, Sync, WriteUndef, PrintTensor, Abort
  };

  Type type() const { return type_; }
  const std::string &name() const { return name_; }
  const std::vector<std::shared_ptr<Program>> &children() const { return children_; }

  Type type_ = Type::Unknown;
  std::string name_;
  std::vector<std::shared_ptr<Program>> children_;
};

/// One compute set in one step: cycles of each tile in an average execution.
class ComputeSetRun {
public:
  const std::string &name() const { return name_; }
  const std::vector<std::uint64_t> &cyclesByTile() const { return cycles_; }
  const std::vector<std::uint64_t> &estimatedCyclesByTile() const { return cycles_; }

  std::string name_;
  std::vector<std::uint64_t> cycles_;
};

class IpuStep {
public:
  std::uint64_t cycles() const { return cycles_; }

  std::uint64_t cycles_ = 0;
};

/// One execution of a program that contains no others. All IPUs take the same time.
class ExecutionStep {
public:
  const std::shared_ptr<Program> &program() const { return program_; }
  const std::vector<IpuStep> &ipus() const { return ipus_; }
  const std::vector<ComputeSetRun> &computeSets() const { return computeSets_; }

  std::shared_ptr<Program> program_;
  std::vector<IpuStep> ipus_;
  std::vector<ComputeSetRun> computeSets_;
};

class Run {
public:
  const std::string &name() const { return name_; }
  const std::vector<ExecutionStep> &steps() const { return steps_; }

  std::string name_;
  std::vector<ExecutionStep> steps_;
};

/// The time of a named sequence, a stream or a selected program, in device cycles since the engine was made. The emulator does not split
/// streams into phases: they are StreamCopyMid.
class Block {
public:
  std::uint64_t cyclesFrom() const { return from_; }
  std::uint64_t cyclesTo() const { return to_; }
  const std::shared_ptr<Program> &program() const { return program_; }
  unsigned tile() const { return tile_; }
  bool isStreamCopy() const { return program_->type() == Program::Type::StreamCopyMid; }
  bool isCommon() const { return !isStreamCopy(); }
  /// A trace has memory for every block, so none is flushed.
  bool isOverflow() const { return false; }
  bool isBlockFlush() const { return false; }

  std::uint64_t from_ = 0, to_ = 0;
  std::shared_ptr<Program> program_;
  unsigned tile_ = 0;
};

/// Runs of an engine with options of the groups `debug.instrument` or `profiler`, or with autoReport.all or outputExecutionProfile.
class ExecutionReport {
public:
  const std::vector<Run> &runs() const { return runs_; }
  std::vector<ExecutionStep> steps() const {
    std::vector<ExecutionStep> all;
    for (const Run &run : runs_)
      all.insert(all.end(), run.steps_.begin(), run.steps_.end());
    return all;
  }
  /// Blocks of a tile, in order: sequences that profiler.blocks.filter matches (all if it is not set), streams, and other programs that
  /// profiler.programs.filter matches. The emulator's tiles take part in every program.
  std::vector<Block> blocks(unsigned tile) const {
    std::vector<Block> found = blocks_;
    for (Block &block : found)
      block.tile_ = tile;
    return found;
  }

  std::vector<Run> runs_;
  std::vector<Block> blocks_;
};

class CompilationReport {
public:
  /// The programs of the engine; only from Engine::getReport.
  const std::vector<std::shared_ptr<Program>> &programs() const { return programs_; }
  /// Only from Engine::getReport; it is not read from files yet.
  const std::vector<Tile> &tiles() const { return tiles_; }
  const Target &target() const { return target_; }
  const Graph &graph() const { return graph_; }

  Target target_;
  Graph graph_;
  std::vector<Tile> tiles_;
  std::vector<std::shared_ptr<Program>> programs_;
};

class Report {
public:
  const CompilationReport &compilation() const { return compilation_; }
  /// Only from Engine::getReport.
  const ExecutionReport &execution() const { return execution_; }
  Version poplarVersion() const { return {}; }

  CompilationReport compilation_;
  ExecutionReport execution_;
};

/// A profile by its path; "profile.pop" also finds the "profile.json" next to it, which is what engines of the emulator write.
/// Throws std::runtime_error if the emulator has written no profile.
Report openReport(const std::string &path);

namespace preview {
using pva::openReport;
}

} // namespace pva

#endif
