// The rule of compute sets: what one vertex writes, no other may touch.
#pragma once

#include <cstdint>

namespace poplar::core {

struct GraphData;

/// Throws graph_connection_error when two vertices of the compute set touch an element that one of them writes.
void checkRaces(const GraphData &graph, std::uint32_t computeSet);

} // namespace poplar::core
