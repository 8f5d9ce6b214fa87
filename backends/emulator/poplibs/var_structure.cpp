// poputil/VarStructure.hpp
#include <poputil/VarStructure.hpp>

#include <algorithm>
#include <numeric>

#include <poputil/exceptions.hpp>

#include "builtin.hpp"

namespace poputil {

using poplar::Graph;
using poplar::Tensor;

namespace {

/// gcd of the lengths and offsets of the contiguous runs in each row of the last dimension.
unsigned groupingOf(const Graph &graph, const Tensor &t) {
  if (t.rank() == 0)
    throw poplibs_error("detectInnermostGrouping: a tensor without dimensions");
  const std::size_t n = t.dim(t.rank() - 1);
  if (n == 0)
    return 1;
  const Tensor rows = t.reshape({t.numElements() / n, n});
  std::size_t common = n;
  for (std::size_t r = 0; r < rows.dim(0) && common > 1; ++r) {
    std::size_t place = 0;
    for (const poplar::Interval &run : rows[r].getContiguousRegions()) {
      place += run.size();
      common = std::gcd(common, place);
    }
    // A group does not extend over two tiles.
    for (const auto &tile : graph.getTileMapping(rows[r], false))
      for (const poplar::Interval &part : tile)
        common = std::gcd(common, std::gcd(part.begin(), part.end()));
  }
  return unsigned(common);
}

} // namespace

unsigned detectInnermostGrouping(const Graph &graph, const Tensor &t) { return groupingOf(graph, t); }

std::vector<GroupingInfo> detectDimGroupings(const Graph &graph, const Tensor &t) {
  std::vector<GroupingInfo> found;
  std::vector<std::size_t> left = t.shape();
  Tensor grouped = t.expand({0});
  for (bool more = true; more;) {
    more = false;
    for (unsigned d = t.rank(); d-- > 0 && !more;) {
      if (left[d] < 2)
        continue;
      // The dimension is placed last, before the groups that were found inside it.
      Tensor turned = grouped.dimRoll(d + 1, t.rank());
      std::size_t inner = 1;
      for (unsigned i = t.rank() + 1; i < turned.rank(); ++i)
        inner *= turned.dim(i);
      const Tensor flat = turned.flatten(t.rank(), turned.rank());
      const unsigned run = groupingOf(graph, flat);
      const unsigned size = inner == 0 || run % inner ? 1 : unsigned(std::gcd<std::size_t>(run / inner, left[d]));
      if (size < 2)
        continue;
      found.emplace_back(d, size);
      left[d] /= size;
      grouped = grouped.reshapePartial(d + 1, d + 2, {left[d], size}).dimRoll(d + 2, t.rank() + 1);
      more = true;
    }
  }
  return found;
}

namespace {

/// The p-th of n parts of a dimension.
poplar::Interval partOf(std::size_t size, std::size_t p, std::size_t n) { return poplar::Interval(p * size / n, (p + 1) * size / n); }

void requirePartitions(const char *what, std::size_t rank, const std::vector<std::size_t> &nPartitions) {
  if (nPartitions.size() != rank || std::count(nPartitions.begin(), nPartitions.end(), 0u))
    throw poplibs_error(std::string(what) + ": " + std::to_string(nPartitions.size()) + " numbers of partitions (each at least 1) for " +
                        std::to_string(rank) + " dimensions");
}

} // namespace

Tensor createPartitionableTensor(Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                 const std::vector<std::size_t> &nPartitions, const poplar::DebugContext &context) {
  requirePartitions("createPartitionableTensor", shape.size(), nPartitions);
  std::vector<std::size_t> part(shape.size());
  const std::function<Tensor(std::size_t)> build = [&](std::size_t d) {
    if (d == shape.size())
      return graph.addVariable(type, part, context);
    std::vector<Tensor> parts;
    for (std::size_t p = 0; p < nPartitions[d]; ++p) {
      part[d] = partOf(shape[d], p, nPartitions[d]).size();
      parts.push_back(build(d + 1));
    }
    return concat(parts, unsigned(d));
  };
  return build(0);
}

void iterateTensorPartitions(const Tensor &t, const std::vector<std::size_t> &nPartitions,
                             const std::function<void(const std::vector<std::size_t> &, const Tensor &)> &f) {
  requirePartitions("iterateTensorPartitions", t.rank(), nPartitions);
  std::vector<std::size_t> index(t.rank());
  const std::function<void(std::size_t, const Tensor &)> walk = [&](std::size_t d, const Tensor &part) {
    if (d == t.rank())
      return f(index, part);
    for (index[d] = 0; index[d] < nPartitions[d]; ++index[d])
      walk(d + 1, part.slice(partOf(t.dim(unsigned(d)), index[d], nPartitions[d]), unsigned(d)));
  };
  walk(0, t);
}

} // namespace poputil
