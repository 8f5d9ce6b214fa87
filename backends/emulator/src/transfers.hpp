// Host transfers that overlap with the program.
#pragma once

#include <cstdint>
#include <vector>

namespace poplar::core {

struct EngineData;

/// Transfers that were started and have not finished. Only tiles without vertices may wait for the host while others continue.
struct Transfers {
  struct Open {
    std::uint32_t step;
    double cycles;
  };
  std::vector<Open> open;
  /// Cycles of transfers in the run in progress or the last one, the part of them that overlapped with the program, and this part over all runs.
  double lastRun = 0, besideLastRun = 0, beside = 0;
};

/// Finds the streams that may overlap with the program, and the steps that wait for them.
void planTransfers(EngineData &engine);
/// Starts a stream; the device waits for it unless it overlaps with the program. The host connection carries one stream at a time.
void beginTransfer(EngineData &engine, std::uint32_t step, double cycles);
/// The device spends cycles in a step; if that `waits`, all started transfers finish first.
void spend(EngineData &engine, double cycles, bool waits);
/// Finishes all started transfers.
void awaitTransfers(EngineData &engine);

} // namespace poplar::core
