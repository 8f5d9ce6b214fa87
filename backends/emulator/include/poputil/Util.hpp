#ifndef SNNC_POPUTIL_UTIL_HPP
#define SNNC_POPUTIL_UTIL_HPP
#include <climits>
#include <cstddef>
#include <string>
#include <vector>
#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Program.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <poputil/exceptions.hpp>
namespace poputil {
/// Ranges cut into at most `maxPartitions` lists of about the same size, in grains.
std::vector<std::vector<poplar::Interval>> splitRegions(const std::vector<poplar::Interval> &regions, unsigned grainSize,
                                                        unsigned maxPartitions, unsigned minElementsPerPartition = 0,
                                                        unsigned maxElementsPerPartition = UINT_MAX,
                                                        unsigned maxElementsPerRegion = UINT_MAX);
/// The same for the workers of a tile.
std::vector<std::vector<poplar::Interval>> splitRegionsBetweenWorkers(const poplar::Target &target,
                                                                      const std::vector<poplar::Interval> &regions, unsigned grainSize,
                                                                      unsigned minElementsPerPartition = 0,
                                                                      unsigned maxElementsPerPartition = UINT_MAX,
                                                                      unsigned maxElementsPerRegion = UINT_MAX);
std::size_t intervalSequenceNumElements(const std::vector<std::vector<poplar::Interval>> &sequences);
poplar::Tensor duplicate(poplar::Graph &graph, const poplar::Tensor &in, poplar::program::Sequence &prog,
                         const poplar::DebugContext &context = {},
                         poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// [begin, end) indices of each dimension for a flat one, and back.
std::vector<std::size_t> unflattenIndex(const std::vector<std::size_t> &shape, std::size_t index);
std::size_t flattenIndex(const std::vector<std::size_t> &shape, const std::vector<std::size_t> &indices);
} // namespace poputil
#endif
