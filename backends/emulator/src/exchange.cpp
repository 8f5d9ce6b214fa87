#include "exchange.hpp"

#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "graph_data.hpp"

namespace poplar::core {

const TileMap &tileMap(const GraphData &graph, std::uint32_t var) { return graph.variables[var].tiles; }

void throwUnmapped(const GraphData &graph, std::uint32_t var, Index begin, Index end, const std::string &user) {
  throw invalid_tile_mapping("no tile is mapped for " + graph.elementName(var, begin, end) + ", used by " + user);
}

namespace {

/// Duplicates dropped, neighbours of one source joined: what is left are the fragments that tiles receive.
void mergeReceived(std::vector<Transfer> &transfers) {
  std::sort(transfers.begin(), transfers.end(), [](const Transfer &a, const Transfer &b) {
    return std::tie(a.tile, a.var, a.begin) < std::tie(b.tile, b.var, b.begin);
  });
  std::size_t kept = 0;
  for (Transfer t : transfers) {
    if (kept > 0 && transfers[kept - 1].tile == t.tile && transfers[kept - 1].var == t.var) {
      Transfer &last = transfers[kept - 1];
      const Index lastEnd = last.begin + last.length;
      const bool sameSource = last.sourceTile == t.sourceTile && last.sourceVar == t.sourceVar &&
                              last.sourceBegin - last.begin == t.sourceBegin - t.begin;
      if (t.begin <= lastEnd && sameSource) {
        last.length = std::max(lastEnd, t.begin + t.length) - last.begin;
        continue;
      }
      if (t.begin < lastEnd) {
        const Index over = std::min(lastEnd - t.begin, t.length);
        t.begin += over;
        t.sourceBegin += over;
        t.length -= over;
        if (t.length == 0)
          continue;
      }
    }
    transfers[kept++] = t;
  }
  transfers.resize(kept);
}

struct Sent {
  std::uint32_t ipu, tile, var;
  Index begin, end;
};

/// Each element leaves its tile once on its own IPU, and once for each other IPU.
void countSent(const GraphData &graph, const std::vector<Transfer> &transfers, std::vector<TileTraffic> &dense,
               std::vector<double> &linkIn, std::vector<double> &linkOut) {
  const unsigned perIpu = graph.target.getTilesPerIPU();
  std::vector<Sent> sent;
  sent.reserve(transfers.size());
  for (const Transfer &t : transfers)
    sent.push_back({t.tile / perIpu, t.sourceTile, t.sourceVar, t.sourceBegin, t.sourceBegin + t.length});
  std::sort(sent.begin(), sent.end(), [](const Sent &a, const Sent &b) {
    return std::tie(a.ipu, a.tile, a.var, a.begin) < std::tie(b.ipu, b.tile, b.var, b.begin);
  });
  const Sent *previous = nullptr;
  Index reached = 0;
  for (const Sent &s : sent) {
    const bool same = previous && previous->ipu == s.ipu && previous->tile == s.tile && previous->var == s.var;
    const Index from = same ? std::max(s.begin, reached) : s.begin;
    const Index elements = std::max<Index>(0, s.end - from);
    reached = same ? std::max(reached, s.end) : s.end;
    previous = &s;
    const std::uint64_t bytes = std::uint64_t(elements) * graph.variables[s.var].type.size();
    if (s.tile / perIpu == s.ipu) {
      dense[s.tile].sent += bytes;
    } else {
      dense[s.tile].linkSent += bytes;
      linkOut[s.tile / perIpu] += double(bytes);
      linkIn[s.ipu] += double(bytes);
    }
  }
}

void countReceived(const GraphData &graph, const std::vector<Transfer> &transfers, std::vector<TileTraffic> &dense, Exchange &exchange) {
  const unsigned perIpu = graph.target.getTilesPerIPU();
  for (const Transfer &t : transfers) {
    TileTraffic &traffic = dense[t.tile];
    const std::uint64_t bytes = std::uint64_t(t.length) * graph.variables[t.var].type.size();
    ++traffic.fragments;
    ++exchange.fragments;
    if (t.sourceTile / perIpu == t.tile / perIpu) {
      traffic.received += bytes;
      exchange.bytesWithin += bytes;
    } else {
      traffic.linkReceived += bytes;
      exchange.bytesBetween += bytes;
    }
  }
}

} // namespace

Exchange planExchange(const GraphData &graph, std::vector<Transfer> transfers) {
  Exchange exchange;
  if (transfers.empty())
    return exchange;
  const Target &target = graph.target;
  const EmulatorModel &model = target.getEmulatorModel();
  mergeReceived(transfers);
  std::vector<TileTraffic> dense(target.getNumTiles());
  std::vector<double> linkIn(target.getNumIPUs()), linkOut(target.getNumIPUs());
  countReceived(graph, transfers, dense, exchange);
  countSent(graph, transfers, dense, linkIn, linkOut);
  const double width = target.getExchangeBytesPerCycle();
  for (std::uint32_t tile = 0; tile < dense.size(); ++tile) {
    TileTraffic &t = dense[tile];
    if (t.received + t.sent + t.linkReceived + t.linkSent == 0)
      continue;
    t.tile = tile;
    exchange.cycles = std::max(exchange.cycles, std::ceil(double(std::max(t.received, t.sent)) / width) + model.fragmentCycles * t.fragments);
    exchange.linkCycles = std::max(exchange.linkCycles, std::ceil(double(std::max(t.linkReceived, t.linkSent)) / width));
    exchange.tiles.push_back(t);
  }
  const double linkBytesPerCycle = model.linkBytesPerSecond / target.getTileClockFrequency();
  for (std::size_t ipu = 0; ipu < linkIn.size(); ++ipu)
    exchange.linkCycles = std::max(exchange.linkCycles, std::ceil(std::max(linkIn[ipu], linkOut[ipu]) / linkBytesPerCycle));
  return exchange;
}

} // namespace poplar::core
