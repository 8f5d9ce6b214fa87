// The PopVision analysis library, for profiles that the emulator wrote: what a program was compiled to.
#ifndef SNNC_PVA_PVA_HPP
#define SNNC_PVA_PVA_HPP

#include <cstdint>
#include <string>

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

class CompilationReport {
public:
  const Target &target() const { return target_; }
  const Graph &graph() const { return graph_; }

  Target target_;
  Graph graph_;
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
