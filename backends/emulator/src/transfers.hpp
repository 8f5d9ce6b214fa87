// Host transfers that run beside the program.
#pragma once

#include <cstdint>
#include <vector>

namespace poplar::core {

struct EngineData;

/// What was sent for and has not arrived. Only tiles without vertices may wait for the host while others go on.
struct Transfers {
  struct Open {
    std::uint32_t step;
    double cycles;
  };
  std::vector<Open> open;
  /// Cycles of transfers in the run in progress or the last one, and what of them the program went on beside; the same of all runs.
  double lastRun = 0, besideLastRun = 0, beside = 0;
};

/// Finds the streams that may run beside the program, and the steps that wait for them.
void planTransfers(EngineData &engine);
/// A stream begins; the device waits for it unless it runs beside the program. The way to the host carries one at a time.
void beginTransfer(EngineData &engine, std::uint32_t step, double cycles);
/// The device spends cycles in a step; where that `waits`, what was sent for arrives first.
void spend(EngineData &engine, double cycles, bool waits);
/// All that was sent for arrives.
void awaitTransfers(EngineData &engine);

} // namespace poplar::core
