// A check of MultiVertices: what their workers write, and whether they need each other.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "superstep.hpp"

namespace poplar::core {

/// Whether SNNC_CHECK_WORKERS asks for it.
bool checksWorkers();

/// Runs each worker on what was there before any of them, then all in turn. Throws when two change one 32-bit word, which is what a
/// tile's memory stores, and when it makes a difference that one sees what another wrote.
void runApart(const Superstep &step, const VertexCall &call, unsigned workers, const std::function<void(unsigned)> &run);

} // namespace poplar::core
