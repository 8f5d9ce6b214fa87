// A check of MultiVertices: the writes of their workers, and dependences between the workers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "superstep.hpp"

namespace poplar::core {

/// Whether SNNC_CHECK_WORKERS requests the check.
bool checksWorkers();

/// Runs each worker on the initial memory, then all in turn. Throws if two workers change the same 32-bit word, the unit in which a
/// tile's memory is stored, and if a worker's result depends on another worker's writes.
void runApart(const Superstep &step, const VertexCall &call, unsigned workers, const std::function<void(unsigned)> &run);

} // namespace poplar::core
