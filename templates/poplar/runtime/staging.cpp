// What staging.hpp declares.
#include "staging.hpp"

#include "layout.hpp"

#include <algorithm>

namespace snnc {

Staging::Staging(poplar::Graph &made, unsigned tiles_per_ipu) : graph(made), tiles(tiles_per_ipu) {}

static poplar::Tensor words(const poplar::Tensor &tensor) {
  return tensor.elementType() == poplar::UNSIGNED_SHORT ? tensor : tensor.reinterpret(poplar::UNSIGNED_INT);
}

void Staging::add(const poplar::DataStream &stream, const std::string &handle, const poplar::Tensor &to,
                  const poplar::program::Sequence &load, bool in_turns) {
  const poplar::Tensor held = graph.addVariable(to.elementType(), {to.numElements()}, handle + "_next");
  map(held, to);
  (in_turns ? fetch_segment : fetch).add(poplar::program::Copy(stream, held));
  copies[{&load, to.elementType() == poplar::UNSIGNED_SHORT}].emplace_back(words(held), words(to));
}

void Staging::end(poplar::program::Sequence &load, const char *name) const {
  for (const bool halves : {false, true}) {
    const auto found = copies.find({&load, halves});
    if (found == copies.end())
      continue;
    Copies all;
    for (const auto &[from, to] : found->second)
      all.add(from, to);
    all.end(load, name);
  }
}

std::vector<Staging::Piece> Staging::pieces_of(const poplar::Tensor &to) const {
  const unsigned each = graph.getTarget().getTilesPerIPU();
  const auto mapping = graph.getTileMapping(to);
  std::vector<Piece> found;
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const poplar::Interval &range : mapping[tile])
      found.push_back({range.begin(), range.end(), tile / each});
  std::sort(found.begin(), found.end(), [](const Piece &a, const Piece &b) { return a.begin < b.begin; });
  return found;
}

void Staging::map(const poplar::Tensor &held, const poplar::Tensor &to) {
  const std::vector<Piece> pieces = pieces_of(to);
  const unsigned each = graph.getTarget().getTilesPerIPU();
  std::map<unsigned, std::size_t> sizes, at;
  for (const Piece &piece : pieces)
    sizes[piece.ipu] += piece.end - piece.begin;
  for (const Piece &piece : pieces) {
    const std::size_t chunk = even((sizes[piece.ipu] + tiles - 1) / tiles);
    for (std::size_t begin = piece.begin, some; begin < piece.end; begin += some, at[piece.ipu] += some) {
      some = std::min(piece.end - begin, chunk - at[piece.ipu] % chunk);
      const unsigned first = each * (piece.ipu + 1) - tiles;
      graph.setTileMapping(held.slice(begin, begin + some), first + static_cast<unsigned>(at[piece.ipu] / chunk));
    }
  }
}

} // namespace snnc
