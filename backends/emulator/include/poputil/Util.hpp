#ifndef SNNC_POPUTIL_UTIL_HPP
#define SNNC_POPUTIL_UTIL_HPP
#include <climits>
#include <cstddef>
#include <string>
#include <vector>
#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/MetadataCreation.hpp>
#include <poplar/Program.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <poputil/exceptions.hpp>
namespace poputil {
/// Ranges split into at most `maxPartitions` lists of similar size, in grains.
std::vector<std::vector<poplar::Interval>> splitRegions(const std::vector<poplar::Interval> &regions, unsigned grainSize,
                                                        unsigned maxPartitions, unsigned minElementsPerPartition = 0,
                                                        unsigned maxElementsPerPartition = UINT_MAX,
                                                        unsigned maxElementsPerRegion = UINT_MAX);
/// Ranges of lists that are contiguous in memory, split between and inside the lists.
std::vector<std::vector<std::vector<poplar::Interval>>> splitRegions(const std::vector<std::vector<poplar::Interval>> &regions, unsigned grainSize,
                                                                     unsigned maxPartitions, unsigned minElementsPerPartition = 0,
                                                                     unsigned maxElementsPerPartition = UINT_MAX,
                                                                     unsigned maxElementsPerRegion = UINT_MAX);
std::vector<std::vector<std::vector<poplar::Interval>>> splitRegionsBetweenWorkers(const poplar::Target &target,
                                                                                   const std::vector<std::vector<poplar::Interval>> &regions,
                                                                                   unsigned grainSize, unsigned minElementsPerPartition = 0,
                                                                                   unsigned maxElementsPerPartition = UINT_MAX,
                                                                                   unsigned maxElementsPerRegion = UINT_MAX);
/// Ranges in order, joined where one ends and the next begins.
void mergeAdjacentRegions(std::vector<poplar::Interval> &regions);
void mergeAdjacentRegions(std::vector<std::vector<poplar::Interval>> &mapping);
std::vector<poplar::Interval> flattenIntervals(const std::vector<std::vector<poplar::Interval>> &intervals);
/// The permutation that reverses the selection of elements by `intervals`.
std::vector<poplar::Interval> calculateUnshufflingIntervals(const std::vector<poplar::Interval> &intervals);
/// As splitRegions, with at most one list for each worker of a tile.
std::vector<std::vector<poplar::Interval>> splitRegionsBetweenWorkers(const poplar::Target &target,
                                                                      const std::vector<poplar::Interval> &regions, unsigned grainSize,
                                                                      unsigned minElementsPerPartition = 0,
                                                                      unsigned maxElementsPerPartition = UINT_MAX,
                                                                      unsigned maxElementsPerRegion = UINT_MAX);
std::size_t intervalSequenceNumElements(const std::vector<std::vector<poplar::Interval>> &sequences);
poplar::Tensor duplicate(poplar::Graph &graph, const poplar::Tensor &in, poplar::program::Sequence &prog,
                         const poplar::DebugContext &context = {},
                         poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// N copies as slices of a new first dimension.
poplar::Tensor cloneN(poplar::Graph &graph, const poplar::Tensor &t, unsigned N, const poplar::DebugContext &context = {},
                      poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
/// The index in each dimension for a flat index, and the inverse.
template <class T> std::vector<T> unflattenIndex(const std::vector<T> &shape, std::size_t index) {
  std::vector<T> indices(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; index /= shape[d])
    indices[d] = T(index % shape[d]);
  return indices;
}
template <class T> std::size_t flattenIndex(const std::vector<T> &shape, const std::vector<T> &indices) {
  std::size_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    index = index * shape[d] + indices[d];
  return index;
}
/// Sizes of `splitCount` parts of a range, as even as possible, with the larger ones distributed among the others.
std::vector<int> balancedPartition(int rangeUpperBound, int splitCount);
/// The number rounded to half precision.
double castToDeviceHalfValue(const poplar::Target &target, double input);
/// Whether the output type HALF represents a number up to a relative `tolerance`; FLOAT represents all.
bool checkAccuracyWhenCast(const poplar::Target &target, double input, poplar::Type inputType, poplar::Type outputType, double tolerance);
/// Splits each dimension from `startDim` on by its factor, which must divide it; the factors follow the quotients.
/// `unfactorDims` reverses this.
poplar::Tensor factorDims(const poplar::Tensor &t, const std::vector<std::size_t> &factors, unsigned startDim = 0);
poplar::Tensor unfactorDims(const poplar::Tensor &t, unsigned numDims, unsigned startDim = 0);
/// Older names of functions of poplar/MetadataCreation.hpp.
inline poplar::Tensor createConstantMetadataTensor(poplar::Graph &graph, poplar::QuarterMetadata::Format fp8Format, int fp8Scale) {
  return poplar::createConstantMetadataTensor(graph, fp8Format, fp8Scale);
}
inline poplar::Tensor createVariableMetadataTensor(poplar::Graph &graph, poplar::QuarterMetadata::Format fp8Format, int fp8Scale) {
  return poplar::createVariableMetadataTensor(graph, fp8Format, fp8Scale);
}
} // namespace poputil
#endif
