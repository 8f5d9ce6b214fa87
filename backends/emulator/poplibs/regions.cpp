// poputil/Util.hpp: ranges of elements, and tensors split along their dimensions.
#include <poputil/Util.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <poplar/IeeeHalf.hpp>
#include <poputil/exceptions.hpp>

#include "builtin.hpp"

namespace poputil {

using poplar::Graph;
using poplar::Interval;
using poplar::Tensor;

namespace {

using Region = std::vector<Interval>;

std::size_t lengthOf(const Region &region) {
  return std::accumulate(region.begin(), region.end(), std::size_t(0), [](std::size_t n, const Interval &i) { return n + i.size(); });
}

/// Elements of a partition: whole grains, as few as `most` partitions allow, within the bounds.
std::size_t partitionSize(std::size_t total, std::size_t grain, unsigned most, unsigned minElements, unsigned maxElements) {
  const std::size_t grains = (total + grain - 1) / grain;
  const std::size_t each = std::max<std::size_t>({1, (grains + most - 1) / std::max(1u, most), (minElements + grain - 1) / grain});
  return std::min<std::size_t>(each, std::max<std::size_t>(1, maxElements / grain)) * grain;
}

/// The elements [begin, end) of a region.
Region cut(const Region &region, std::size_t begin, std::size_t end) {
  Region part;
  std::size_t at = 0;
  for (const Interval &i : region) {
    const std::size_t from = std::max(begin, at), to = std::min(end, at + i.size());
    if (from < to)
      part.emplace_back(i.begin() + (from - at), i.begin() + (to - at));
    at += i.size();
  }
  return part;
}

} // namespace

std::vector<std::vector<Region>> splitRegions(const std::vector<Region> &regions, unsigned grainSize, unsigned maxPartitions,
                                              unsigned minElementsPerPartition, unsigned maxElementsPerPartition, unsigned maxElementsPerRegion) {
  std::size_t total = 0;
  for (const Region &region : regions)
    total += lengthOf(region);
  const std::size_t grain = std::max(1u, grainSize);
  const std::size_t each = partitionSize(total, grain, maxPartitions, minElementsPerPartition, maxElementsPerPartition);
  std::vector<std::vector<Region>> parts;
  std::size_t left = 0;
  for (const Region &region : regions)
    for (std::size_t begin = 0, length = lengthOf(region); begin < length;) {
      if (left == 0) {
        parts.emplace_back();
        left = each;
      }
      const std::size_t n = std::min({left, length - begin, std::size_t(std::max(1u, maxElementsPerRegion))});
      parts.back().push_back(cut(region, begin, begin + n));
      begin += n;
      left -= n;
    }
  return parts;
}

std::vector<Region> splitRegions(const Region &regions, unsigned grainSize, unsigned maxPartitions, unsigned minElementsPerPartition,
                                 unsigned maxElementsPerPartition, unsigned maxElementsPerRegion) {
  std::vector<Region> single;
  for (const Interval &region : regions)
    single.push_back({region});
  std::vector<Region> parts;
  for (const std::vector<Region> &part :
       splitRegions(single, grainSize, maxPartitions, minElementsPerPartition, maxElementsPerPartition, maxElementsPerRegion))
    parts.push_back(flattenIntervals(part));
  return parts;
}

std::vector<Region> splitRegionsBetweenWorkers(const poplar::Target &target, const Region &regions, unsigned grainSize,
                                               unsigned minElementsPerPartition, unsigned maxElementsPerPartition, unsigned maxElementsPerRegion) {
  return splitRegions(regions, grainSize, target.getNumWorkerContexts(), minElementsPerPartition, maxElementsPerPartition, maxElementsPerRegion);
}

std::vector<std::vector<Region>> splitRegionsBetweenWorkers(const poplar::Target &target, const std::vector<Region> &regions, unsigned grainSize,
                                                            unsigned minElementsPerPartition, unsigned maxElementsPerPartition,
                                                            unsigned maxElementsPerRegion) {
  return splitRegions(regions, grainSize, target.getNumWorkerContexts(), minElementsPerPartition, maxElementsPerPartition, maxElementsPerRegion);
}

std::size_t intervalSequenceNumElements(const std::vector<Region> &sequences) {
  return std::accumulate(sequences.begin(), sequences.end(), std::size_t(0), [](std::size_t n, const Region &r) { return n + lengthOf(r); });
}

void mergeAdjacentRegions(Region &regions) {
  std::sort(regions.begin(), regions.end());
  Region merged;
  for (const Interval &region : regions)
    if (!merged.empty() && merged.back().end() == region.begin())
      merged.back() = Interval(merged.back().begin(), region.end());
    else if (region.size() > 0)
      merged.push_back(region);
  regions = std::move(merged);
}

void mergeAdjacentRegions(std::vector<Region> &mapping) {
  for (Region &regions : mapping)
    mergeAdjacentRegions(regions);
}

Region flattenIntervals(const std::vector<Region> &intervals) {
  Region all;
  for (const Region &list : intervals)
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

Region calculateUnshufflingIntervals(const Region &intervals) {
  std::vector<std::pair<Interval, std::size_t>> placed;
  std::size_t at = 0;
  for (const Interval &i : intervals) {
    placed.emplace_back(i, at);
    at += i.size();
  }
  std::sort(placed.begin(), placed.end());
  Region back;
  for (const auto &[interval, place] : placed)
    back.emplace_back(place, place + interval.size());
  return back;
}

Tensor cloneN(Graph &graph, const Tensor &t, unsigned N, const poplar::DebugContext &context, poplar::TensorCloneMethod method) {
  return graph.cloneN(t.elementType(), t, N, context, method);
}

std::vector<int> balancedPartition(int rangeUpperBound, int splitCount) {
  std::vector<int> sizes;
  for (int i = 0; i < splitCount; ++i)
    sizes.push_back(int(std::int64_t(i + 1) * rangeUpperBound / splitCount - std::int64_t(i) * rangeUpperBound / splitCount));
  return sizes;
}

double castToDeviceHalfValue(const poplar::Target &, double input) { return double(float(poplar::IeeeHalf(input))); }

bool checkAccuracyWhenCast(const poplar::Target &target, double input, poplar::Type inputType, poplar::Type outputType, double tolerance) {
  if (inputType == poplar::HALF || outputType != poplar::HALF)
    return true;
  const double half = castToDeviceHalfValue(target, input);
  return std::isfinite(half) && std::fabs(half - input) <= tolerance * std::fabs(input);
}

Tensor factorDims(const Tensor &t, const std::vector<std::size_t> &factors, unsigned startDim) {
  const unsigned n = unsigned(factors.size());
  if (startDim + n > t.rank())
    throw poplibs_error("factorDims: " + std::to_string(n) + " factors from dimension " + std::to_string(startDim) + " on for shape " + t.shapeToString());
  std::vector<std::size_t> shape = t.shape();
  std::vector<unsigned> from, to;
  for (unsigned i = n; i-- > 0;) {
    if (factors[i] == 0 || shape[startDim + i] % factors[i])
      throw poplibs_error("factorDims: " + std::to_string(factors[i]) + " does not divide dimension " + std::to_string(startDim + i) + " of " +
                          t.shapeToString());
    shape[startDim + i] /= factors[i];
    shape.insert(shape.begin() + startDim + i + 1, factors[i]);
  }
  for (unsigned i = 0; i < n; ++i) {
    from.push_back(startDim + 2 * i + 1);
    to.push_back(startDim + n + i);
  }
  return t.reshape(shape).dimShufflePartial(from, to);
}

Tensor unfactorDims(const Tensor &t, unsigned numDims, unsigned startDim) {
  std::vector<unsigned> from, to;
  std::vector<std::size_t> shape = t.shape();
  if (startDim + 2 * numDims > t.rank())
    throw poplibs_error("unfactorDims: " + std::to_string(numDims) + " factored dimensions from " + std::to_string(startDim) + " on for shape " +
                        t.shapeToString());
  for (unsigned i = 0; i < numDims; ++i) {
    from.push_back(startDim + numDims + i);
    to.push_back(startDim + 2 * i + 1);
    shape[startDim + i] *= shape[startDim + numDims + i];
  }
  shape.erase(shape.begin() + startDim + numDims, shape.begin() + startDim + 2 * numDims);
  return t.dimShufflePartial(from, to).reshape(shape);
}

} // namespace poputil
