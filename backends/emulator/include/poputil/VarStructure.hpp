// Memory layout of a tensor's elements.
#ifndef SNNC_POPUTIL_VAR_STRUCTURE_HPP
#define SNNC_POPUTIL_VAR_STRUCTURE_HPP
#include <functional>
#include <utility>
#include <vector>
#include <poplar/Graph.hpp>
namespace poputil {
/// A dimension and the number of its elements that are contiguous in memory.
using GroupingInfo = std::pair<unsigned, unsigned>;
/// The largest divisor of the last dimension for which all groups are contiguous in memory.
unsigned detectInnermostGrouping(const poplar::Graph &graph, const poplar::Tensor &t);
/// Groups from the innermost outward: of the dimension whose elements are contiguous, then of the rest.
std::vector<GroupingInfo> detectDimGroupings(const poplar::Graph &graph, const poplar::Tensor &t);
/// A tensor in which each of nPartitions[d] parts along every dimension d is one range of memory; the caller chooses its tiles.
poplar::Tensor createPartitionableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                         const std::vector<std::size_t> &nPartitions, const poplar::DebugContext &context = {});
/// Calls f(indices, part) for the parts, with the last index fastest.
void iterateTensorPartitions(const poplar::Tensor &t, const std::vector<std::size_t> &nPartitions,
                             const std::function<void(const std::vector<std::size_t> &, const poplar::Tensor &)> &f);
} // namespace poputil
#endif
