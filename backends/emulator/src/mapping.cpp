#include "mapping.hpp"

#include <algorithm>
#include <map>

namespace poplar::core {

namespace {

void mergeNeighbours(std::vector<Piece> &pieces) {
  std::size_t kept = 0;
  for (const Piece &p : pieces) {
    if (kept > 0 && pieces[kept - 1].end == p.begin && pieces[kept - 1].tile == p.tile)
      pieces[kept - 1].end = p.end;
    else
      pieces[kept++] = p;
  }
  pieces.resize(kept);
}

/// Removes [begin, end) from the assigned ranges and inserts the new range.
void overwrite(std::map<Index, Piece> &assigned, const Piece &piece) {
  auto it = assigned.upper_bound(piece.begin);
  if (it != assigned.begin() && std::prev(it)->second.end > piece.begin)
    --it;
  while (it != assigned.end() && it->second.begin < piece.end) {
    const Piece old = it->second;
    it = assigned.erase(it);
    if (old.begin < piece.begin)
      assigned[old.begin] = {old.begin, piece.begin, old.tile};
    if (old.end > piece.end)
      assigned[piece.end] = {piece.end, old.end, old.tile};
  }
  assigned[piece.begin] = piece;
}

} // namespace

void TileMap::normalise() const {
  dirty_ = false;
  std::vector<Piece> sorted = pieces_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Piece &a, const Piece &b) { return a.begin < b.begin; });
  bool disjoint = true;
  for (std::size_t i = 1; i < sorted.size() && disjoint; ++i)
    disjoint = sorted[i - 1].end <= sorted[i].begin;
  if (!disjoint) {
    std::map<Index, Piece> assigned;
    for (const Piece &piece : pieces_)
      overwrite(assigned, piece);
    sorted.clear();
    for (const auto &entry : assigned)
      sorted.push_back(entry.second);
  }
  mergeNeighbours(sorted);
  pieces_ = std::move(sorted);
}

std::size_t TileMap::find(Index at) const {
  const std::vector<Piece> &all = pieces();
  return std::size_t(std::upper_bound(all.begin(), all.end(), at, [](Index x, const Piece &p) { return x < p.end; }) - all.begin());
}

} // namespace poplar::core
