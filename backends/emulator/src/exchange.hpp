// What one exchange moves between tiles, and what that takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poplar/Target.hpp>

#include "mapping.hpp"

namespace poplar::core {

struct GraphData;

/// One range of elements on its way from a tile to another.
struct Transfer {
  std::uint32_t sourceTile, tile;
  std::uint32_t sourceVar, var;
  Index sourceBegin, begin, length;
};

/// Received from the own IPU and over links; sent, each element once, and the part of it that leaves the IPU.
struct TileTraffic {
  std::uint32_t tile;
  std::uint32_t fragments = 0;
  std::uint64_t received = 0, sent = 0, linkReceived = 0, linkSent = 0;
};

struct Exchange {
  /// Tiles that take part, in order.
  std::vector<TileTraffic> tiles;
  std::uint64_t bytesWithin = 0, bytesBetween = 0, fragments = 0;
  /// Of the busiest tile, and what the busiest wire between IPUs takes beyond that.
  double cycles = 0, linkCycles = 0;
  bool empty() const { return tiles.empty(); }
};

/// Ranges that reach a tile twice are sent once; each receiver of a multicast pays, the sender and each wire on the way once.
Exchange planExchange(const GraphData &graph, std::vector<Transfer> transfers);

const TileMap &tileMap(const GraphData &graph, std::uint32_t var);
[[noreturn]] void throwUnmapped(const GraphData &graph, std::uint32_t var, Index begin, Index end, const std::string &user);

/// Calls f(begin, end, tile) for every part of a range; throws invalid_tile_mapping, naming user(), where no tile holds it.
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
