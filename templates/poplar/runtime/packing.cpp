// Definitions of packing.hpp.
#include "packing.hpp"

#include <algorithm>

namespace snnc {

namespace {

/// Returns the beginning of part i if `total` items are divided into `parts` parts, with larger ones first.
std::size_t edge(std::size_t total, std::size_t parts, std::size_t i) { return total / parts * i + std::min(total % parts, i); }

} // namespace

Packing::Packing(const Population &from, const Population &to, std::size_t rows, std::size_t bundles)
    : source(from), target(to), inputs(rows) {
  const std::size_t width = target.homes.size() / target.replicas.size();
  std::size_t last = target.replicas.size();
  for (std::size_t r = 0; r < source.replicas.size(); ++r) {
    const std::size_t replica = Layout::nearest(source, target, r);
    if (replica == last)
      continue;
    last = replica;
    for (std::size_t b = 0; b < bundles; ++b)
      add_bundle(replica, replica * width + edge(width, bundles, b), replica * width + edge(width, bundles, b + 1));
  }
}

void Packing::add_bundle(std::size_t replica, std::size_t begin, std::size_t end) {
  const std::size_t tiles = source.homes.size() / source.replicas.size(), members = end - begin;
  unsigned columns = 0;
  for (std::size_t h = begin; h < end; ++h)
    columns += target.homes[h].count;
  for (std::size_t m = 0; m < members; ++m) {
    Packer p{target.homes[begin + m].tile, 0, 0, columns, target.homes[begin].begin, target.homes[end - 1].end, 0, 0, replica, all.size()};
    p.home_begin = edge(tiles, members, m);
    p.home_end = edge(tiles, members, m + 1);
    p.first = source.homes[p.home_begin].first;
    p.count = source.homes[p.home_end - 1].first + source.homes[p.home_end - 1].count - p.first;
    all.push_back(p);
  }
}

poplar::Tensor Packing::collected(const Packer &p, const Parts &weights) const {
  return Layout::rows_between(target, p.begin, p.end, weights, inputs, p.first, p.first + p.count);
}

std::vector<unsigned> Packing::widths(const Packer &p) const {
  std::vector<unsigned> found;
  for (std::size_t g = p.begin; g < p.end; ++g)
    for (const unsigned width : {target.groups[g].count / 2 * 2, target.groups[g].count % 2})
      if (width != 0)
        found.push_back(width);
  return found;
}

std::vector<unsigned> Packing::runs(const Packer &p) const {
  std::vector<unsigned> found;
  for (std::size_t h = p.home_begin; h < p.home_end; ++h) {
    if (found.empty() || found.back() != source.homes[h].count)
      found.insert(found.end(), {0, source.homes[h].count});
    ++found[found.size() - 2];
  }
  return found;
}

poplar::Tensor Packing::to(const Home &h, const Parts &packed) const {
  std::vector<poplar::Tensor> found;
  const std::size_t replica = Layout::nearest(source, target, h.replica);
  for (const Packer &p : all)
    if (p.replica == replica && p.first <= h.first && h.first < p.first + p.count) {
      const std::size_t begin = static_cast<std::size_t>(h.first - p.first) * p.columns;
      found.push_back(packed[p.index].slice(begin, begin + static_cast<std::size_t>(h.count) * p.columns));
    }
  return poplar::concat(found);
}

} // namespace snnc
