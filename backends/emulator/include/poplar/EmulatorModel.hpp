// Emulator extension: the parameters of memory and cycles. Sources: docs/reference/emulator.md.
#ifndef SNNC_POPLAR_EMULATOR_MODEL_HPP
#define SNNC_POPLAR_EMULATOR_MODEL_HPP

#include <cstdint>
#include <vector>

namespace poplar {

/// A link between two IPUs, or between an IPU and a switch (numbered after the last IPU): bytes per second in each direction.
struct EmulatorWire {
  unsigned from, to;
  double bytesPerSecond;
};

struct EmulatorModel {
  /// Bytes that a tile receives, and sends, per tile cycle; 0: the whole number of bytes of the IPU model.
  double exchangeBytesPerCycle = 0;
  /// Tile cycles for each fragment that a tile receives in an exchange.
  double fragmentCycles = 9;
  /// Exchange code for each distinct fragment of a program site, in bytes.
  std::uint32_t fragmentCodeBytes = 36;
  /// On-chip barrier before an exchange, tile cycles.
  double syncCycles = 126;
  /// Barrier over several IPUs, tile cycles.
  double globalSyncCycles = 600;
  /// Set-up of an exchange, tile cycles.
  double exchangeSetupCycles = 100;
  /// Control of one superstep, tile cycles.
  double controlCycles = 30;
  /// The links between IPUs; of several shortest routes, the one over the links listed first is used.
  std::vector<EmulatorWire> wires;
  /// Without links: bytes per second that one IPU can send to the others, and receive from them.
  double linkBytesPerSecond = 136e9;
  /// Host to IPU and back, bytes per second.
  double hostBytesPerSecond = 8e9;
  /// Streaming memory of an IPU: bytes per second for reads and writes, and its size in bytes.
  double streamingBytesPerSecond = 20e9;
  std::uint64_t streamingBytesPerIpu = std::uint64_t(1) << 36;
  /// Copy inside a tile: tile cycles per call, bytes per cycle.
  double localCopyCycles = 288;
  double localCopyBytesPerCycle = 8;
  /// Worker cycles to start a vertex that counts its own cycles.
  double vertexStartCycles = 0;
  /// Tile cycles of a MultiVertex in addition to its workers.
  double supervisorCycles = 11;
  /// Worker cycles of a vertex without an estimate: a start, plus cycles for each 8 bytes of its edges.
  double estimateStartCycles = 29;
  double estimateVectorCycles = 3;
  /// Control code and stack of every tile, bytes.
  std::uint32_t controlCodeBytes = 700;
  std::uint32_t stackBytes = 3174;
};

} // namespace poplar

#endif
