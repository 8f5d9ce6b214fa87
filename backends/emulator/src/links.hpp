// Ways between IPUs, and how long the links take.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <poplar/Target.hpp>

namespace poplar::core {

/// What one IPU sends to several others: bytes by sender and receivers.
using LinkFlows = std::map<std::pair<unsigned, std::vector<unsigned>>, double>;

/// Tile cycles of the busiest wire. Data for several IPUs crosses each wire of the tree of ways from its sender once.
double linkCycles(const Target &target, const LinkFlows &flows);

} // namespace poplar::core
