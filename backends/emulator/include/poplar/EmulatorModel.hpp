// Emulator extension: the numbers behind memory and cycles. Sources: docs/reference/emulator.md.
#ifndef SNNC_POPLAR_EMULATOR_MODEL_HPP
#define SNNC_POPLAR_EMULATOR_MODEL_HPP

#include <cstdint>
#include <vector>

namespace poplar {

/// What joins two IPUs, or an IPU and a switch (numbered behind the last IPU): bytes a second each way.
struct EmulatorWire {
  unsigned from, to;
  double bytesPerSecond;
};

struct EmulatorModel {
  /// What a tile receives, and sends, in a tile cycle; 0: the whole number of bytes of the IPU model.
  double exchangeBytesPerCycle = 0;
  /// Tile cycles for each fragment that a tile receives in an exchange.
  double fragmentCycles = 9;
  /// Exchange code for each distinct fragment of a program site, bytes.
  std::uint32_t fragmentCodeBytes = 36;
  /// On-chip barrier before an exchange, tile cycles.
  double syncCycles = 126;
  /// Barrier over several IPUs, tile cycles.
  double globalSyncCycles = 600;
  /// Set-up of an exchange, tile cycles.
  double exchangeSetupCycles = 100;
  /// Control of one superstep, tile cycles.
  double controlCycles = 30;
  /// The wires between IPUs; of several shortest ways the one over the wires listed first is taken.
  std::vector<EmulatorWire> wires;
  /// Without wires: what one IPU can send to the others, and receive from them, bytes a second.
  double linkBytesPerSecond = 136e9;
  /// Host to IPU and back, bytes a second.
  double hostBytesPerSecond = 8e9;
  /// Streaming memory: what an IPU reads and writes of it, bytes a second, and what it has of it, bytes.
  double streamingBytesPerSecond = 20e9;
  std::uint64_t streamingBytesPerIpu = std::uint64_t(1) << 36;
  /// Copy inside a tile: tile cycles a call, bytes a cycle.
  double localCopyCycles = 288;
  double localCopyBytesPerCycle = 8;
  /// Worker cycles to start a vertex that counts its own cycles.
  double vertexStartCycles = 0;
  /// Tile cycles that a MultiVertex pays beside its workers.
  double supervisorCycles = 11;
  /// Worker cycles of a vertex without estimate: a start, and so many for each 8 bytes of its edges.
  double estimateStartCycles = 29;
  double estimateVectorCycles = 3;
  /// Control code and stack of every tile, bytes.
  std::uint32_t controlCodeBytes = 700;
  std::uint32_t stackBytes = 3174;
};

} // namespace poplar

#endif
