// poputil/VarStructure.hpp
#include <poputil/VarStructure.hpp>

#include <numeric>

#include <poputil/exceptions.hpp>

#include "builtin.hpp"

namespace poputil {

using poplar::Graph;
using poplar::Tensor;

namespace {

/// gcd of the lengths, and offsets, of the runs of consecutive memory in each row of the last dimension.
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
    // A group does not reach over two tiles.
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
      // The dimension goes last, before the groups that were found inside it.
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

} // namespace poputil
