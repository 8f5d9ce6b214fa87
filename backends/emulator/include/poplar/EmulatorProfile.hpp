// Emulator extension: the cost of a program in memory, exchange and cycles.
#ifndef SNNC_POPLAR_EMULATOR_PROFILE_HPP
#define SNNC_POPLAR_EMULATOR_PROFILE_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace poplar {

/// Bytes of one tile by category: everything that exists at any time in any program.
struct TileMemory {
  std::uint64_t variables = 0, constants = 0, vertexState = 0, edgeLists = 0, code = 0, controlCode = 0, stack = 0;
  std::uint64_t exchangeBuffers = 0, exchangeCode = 0;
  /// For variables: bytes that are live everywhere. For variables and exchange buffers: bytes that are live at the tile's peak, an index in
  /// EmulatorProfile::memoryOverTime.
  std::uint64_t alwaysVariables = 0, peakVariables = 0, peakExchangeBuffers = 0;
  std::uint32_t peakPoint = 0;
  std::uint64_t total() const {
    return variables + constants + vertexState + edgeLists + code + controlCode + stack + exchangeBuffers + exchangeCode;
  }
  /// The peak memory of the tile if data that are not live share memory without gaps.
  std::uint64_t peak() const { return total() - variables - exchangeBuffers + peakVariables + peakExchangeBuffers; }
};

/// Live data at one operation of a program.
struct MemoryPoint {
  std::uint32_t program = 0;
  std::string name;
  /// For the tile with the largest peak (EmulatorProfile::busiestMemoryTile).
  std::uint64_t variables = 0, exchangeBuffers = 0;
  /// All bytes of the tile with most bytes at this point.
  std::uint64_t bytes = 0;
  std::uint32_t fullestTile = 0;
  std::uint64_t variablesOfAll = 0, exchangeBuffersOfAll = 0;
};

/// One compute set or copy of the program, over all its executions since the profile was reset.
struct StepProfile {
  std::string name;
  /// "execute", "copy", "stream", "remote", "control"
  std::string kind;
  std::uint64_t executions = 0;
  std::uint64_t vertices = 0;
  /// Tile cycles: of the busiest tile, and summed over tiles.
  double computeCyclesBusiest = 0, computeCyclesSum = 0;
  double syncCycles = 0, exchangeCycles = 0, linkCycles = 0, controlCycles = 0, remoteCycles = 0;
  /// For a stream: its transfers, which are not part of cycles(), and the part that overlapped with the program.
  double hostCycles = 0, hostCyclesBeside = 0;
  std::uint64_t bytesWithinIpus = 0, bytesBetweenIpus = 0, bytesHost = 0, bytesRemote = 0, fragments = 0;
  /// Vertex types whose cycles were estimated from bytes.
  std::vector<std::string> estimated;
  /// Wall-clock time on this host, seconds.
  double hostSeconds = 0;
  double cycles() const { return computeCyclesBusiest + syncCycles + exchangeCycles + linkCycles + controlCycles + remoteCycles; }
};

struct EmulatorProfile {
  unsigned tiles = 0, ipus = 0, bytesPerTile = 0;
  double clockHz = 0;
  /// Of the graph, even if its programs do not use them.
  std::uint64_t computeSets = 0, variables = 0, vertices = 0, edges = 0;
  /// Device cycles of the last run, and of all runs since the profile was reset.
  double cyclesLastRun = 0, cycles = 0;
  /// Host transfers in tile cycles, not included above; of the last run; and the part that overlapped with the program.
  double hostCycles = 0, hostCyclesLastRun = 0, hostCyclesBeside = 0, hostCyclesBesideLastRun = 0;
  std::vector<StepProfile> steps;
  std::vector<TileMemory> memory;
  /// In the order of programs and of their operations.
  std::vector<MemoryPoint> memoryOverTime;
  std::vector<double> computeCycles;
  /// Streaming memory of each IPU, bytes.
  std::vector<std::uint64_t> remoteMemory;
  std::vector<std::uint64_t> bytesReceived, bytesSent, linkBytesReceived, linkBytesSent;

  TileMemory totalMemory() const;
  unsigned busiestMemoryTile() const;
  std::string toJson() const;
};

} // namespace poplar

#endif
