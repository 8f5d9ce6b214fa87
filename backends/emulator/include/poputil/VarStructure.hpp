// How the elements of a tensor lie in memory.
#ifndef SNNC_POPUTIL_VAR_STRUCTURE_HPP
#define SNNC_POPUTIL_VAR_STRUCTURE_HPP
#include <functional>
#include <utility>
#include <vector>
#include <poplar/Graph.hpp>
namespace poputil {
/// A dimension and how many of its elements follow each other in memory.
using GroupingInfo = std::pair<unsigned, unsigned>;
/// The largest divisor of the last dimension whose elements follow each other in memory, in every group.
unsigned detectInnermostGrouping(const poplar::Graph &graph, const poplar::Tensor &t);
/// Groups from the innermost outwards: of the dimension whose elements follow each other, then of what remains.
std::vector<GroupingInfo> detectDimGroupings(const poplar::Graph &graph, const poplar::Tensor &t);
/// A tensor of which each of nPartitions[d] parts along every dimension d is one range of memory; its tiles are the caller's to choose.
poplar::Tensor createPartitionableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                         const std::vector<std::size_t> &nPartitions, const poplar::DebugContext &context = {});
/// Calls f(indices, part) for the parts, the last index fastest.
void iterateTensorPartitions(const poplar::Tensor &t, const std::vector<std::size_t> &nPartitions,
                             const std::function<void(const std::vector<std::size_t> &, const poplar::Tensor &)> &f);
} // namespace poputil
#endif
