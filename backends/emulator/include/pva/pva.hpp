// The PopVision analysis library, for profiles that the emulator wrote: what a program was compiled to.
#ifndef SNNC_PVA_PVA_HPP
#define SNNC_PVA_PVA_HPP

#include <cstdint>
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
  /// The most that the tile holds at once.
  const MemoryTotal &total() const { return total_; }

  MemoryTotal total_;
};

class Tile {
public:
  const TileMemory &memory() const { return memory_; }

  TileMemory memory_;
};

class CompilationReport {
public:
  /// Of Engine::getReport alone: files are not read so far.
  const std::vector<Tile> &tiles() const { return tiles_; }
  const Target &target() const { return target_; }
  const Graph &graph() const { return graph_; }

  Target target_;
  Graph graph_;
  std::vector<Tile> tiles_;
};

class Report {
public:
  const CompilationReport &compilation() const { return compilation_; }
  Version poplarVersion() const { return {}; }

  CompilationReport compilation_;
};

/// A profile by its path; for "profile.pop" also the "profile.json" beside it, which is what engines write here.
/// Throws std::runtime_error where there is none of the emulator.
Report openReport(const std::string &path);

namespace preview {
using pva::openReport;
}

} // namespace pva

#endif
