// How the elements of a tensor lie in memory.
#ifndef SNNC_POPUTIL_VAR_STRUCTURE_HPP
#define SNNC_POPUTIL_VAR_STRUCTURE_HPP
#include <utility>
#include <vector>
#include <poplar/Graph.hpp>
#include <poputil/TileMapping.hpp>
namespace poputil {
/// A dimension and how many of its elements follow each other in memory.
using GroupingInfo = std::pair<unsigned, unsigned>;
/// The largest divisor of the last dimension whose elements follow each other in memory, in every group.
unsigned detectInnermostGrouping(const poplar::Graph &graph, const poplar::Tensor &t);
/// Groups from the innermost outwards: of the dimension whose elements follow each other, then of what remains.
std::vector<GroupingInfo> detectDimGroupings(const poplar::Graph &graph, const poplar::Tensor &t);
} // namespace poputil
#endif
