// Rows of streaming memory, in which segmented sequences store data outside the tiles.
#ifndef SNNC_STREAMING_HPP
#define SNNC_STREAMING_HPP

#include "layout.hpp"

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace snnc {

/// A row of remote buffers, with one buffer per IPU; its pieces are on tiles.
class RemoteRows {
public:
  RemoteRows(poplar::Graph &made, std::string called);

  /// Adds the data on the tile of each of `items`: of `slots` slots, those from `first` on.
  template <class Items> void add(const Parts &parts, const Items &items, std::size_t slots = 1, std::size_t first = 0) {
    for (std::size_t i = 0; i < items.size(); ++i)
      add(parts[i].slice(parts.size(i) / slots * first, parts.size(i)), items[i].tile);
  }

  /// Adds the copies of a row to and from streaming memory with `rows` rows; `row` is the number of the row.
  void end(std::size_t rows, const poplar::Tensor &row, poplar::program::Sequence &to, poplar::program::Sequence &from);

private:
  poplar::Graph &graph;
  std::string name;
  /// Pieces, grouped by element size (16 bits or not) and IPU.
  std::map<std::pair<bool, unsigned>, std::vector<poplar::Tensor>> pieces;

  void add(const poplar::Tensor &piece, unsigned tile);
  static std::size_t size_of(const poplar::Tensor &piece);
};

} // namespace snnc

#endif
