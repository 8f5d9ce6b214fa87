// The rule of compute sets: elements that one vertex writes must not be accessed by any other.
#pragma once

#include <cstdint>

namespace poplar::core {

struct GraphData;

/// Throws graph_connection_error if two vertices of the compute set access an element that one of them writes.
void checkRaces(const GraphData &graph, std::uint32_t computeSet);

} // namespace poplar::core
