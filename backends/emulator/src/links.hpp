// Routes between IPUs, and the time of transfers over the links.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <poplar/Target.hpp>

namespace poplar::core {

/// Data that one IPU sends to several others: bytes by sender and receivers.
using LinkFlows = std::map<std::pair<unsigned, std::vector<unsigned>>, double>;

/// Tile cycles of the busiest wire. Data for several IPUs crosses each wire of its sender's routing tree once.
double linkCycles(const Target &target, const LinkFlows &flows);

} // namespace poplar::core
