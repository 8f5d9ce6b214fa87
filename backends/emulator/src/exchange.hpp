// Data that one exchange moves between tiles, and its cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poplar/Target.hpp>

#include "mapping.hpp"

namespace poplar::core {

struct GraphData;

/// One range of elements sent from one tile to another.
struct Transfer {
  std::uint32_t sourceTile, tile;
  std::uint32_t sourceVar, var;
  Index sourceBegin, begin, length;
};

/// Bytes received from the same IPU and over links; bytes sent, counting each element once, and the part of them that leaves the IPU.
struct TileTraffic {
  std::uint32_t tile;
  std::uint32_t fragments = 0;
  std::uint64_t received = 0, sent = 0, linkReceived = 0, linkSent = 0;
};

struct Exchange {
  /// Participating tiles, in order.
  std::vector<TileTraffic> tiles;
  std::uint64_t bytesWithin = 0, bytesBetween = 0, fragments = 0;
  /// Cycles of the busiest tile, and the additional cycles of the busiest wire between IPUs.
  double cycles = 0, linkCycles = 0;
  bool empty() const { return tiles.empty(); }
};

/// Ranges that reach a tile twice are sent once; a multicast costs each receiver, and costs the sender and each wire on the route once.
Exchange planExchange(const GraphData &graph, std::vector<Transfer> transfers);

const TileMap &tileMap(const GraphData &graph, std::uint32_t var);
[[noreturn]] void throwUnmapped(const GraphData &graph, std::uint32_t var, Index begin, Index end, const std::string &user);

/// Calls f(begin, end, tile) for every part of a range; throws invalid_tile_mapping, with user() in the message, if a part is on no tile.
template <class User, class F> void forEachTile(const GraphData &graph, std::uint32_t var, Index begin, Index end, User &&user, F &&f) {
  const TileMap &map = tileMap(graph, var);
  const std::vector<Piece> &pieces = map.pieces();
  for (std::size_t p = map.find(begin); begin < end; ++p) {
    if (p >= pieces.size() || pieces[p].begin > begin)
      throwUnmapped(graph, var, begin, p < pieces.size() && pieces[p].begin < end ? pieces[p].begin : end, user());
    const Index next = pieces[p].end < end ? pieces[p].end : end;
    f(begin, next, pieces[p].tile);
    begin = next;
  }
}

} // namespace poplar::core
