#include "exchange.hpp"

#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "graph_data.hpp"
#include "links.hpp"

namespace poplar::core {

const TileMap &tileMap(const GraphData &graph, std::uint32_t var) { return graph.variables[var].tiles; }

void throwUnmapped(const GraphData &graph, std::uint32_t var, Index begin, Index end, const std::string &user) {
  throw invalid_tile_mapping("no tile is mapped for " + graph.elementName(var, begin, end) + ", used by " + user);
}

namespace {

/// Removes duplicates and joins neighbours of one source; the result is the fragments that tiles receive.
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
  std::uint32_t tile, var, ipu;
  Index begin, end;
};

/// Ranges of one variable on one tile; the number of receivers of each element per IPU changes at their ends.
class Wanted {
public:
  void add(const Sent &s) {
    changes[s.begin].push_back({s.ipu, 1});
    changes[s.end].push_back({s.ipu, -1});
  }

  /// Calls f(elements, receiving IPUs), range by range.
  template <class F> void each(F &&f) const {
    std::map<std::uint32_t, int> open;
    Index begin = 0;
    for (const auto &[place, here] : changes) {
      if (!open.empty())
        f(place - begin, open);
      begin = place;
      for (const auto &[ipu, change] : here)
        if ((open[ipu] += change) == 0)
          open.erase(ipu);
    }
  }

private:
  std::map<Index, std::vector<std::pair<std::uint32_t, int>>> changes;
};

/// Each element leaves its tile once, regardless of the number of receiving tiles and IPUs; the links multiply it on the route.
void countSent(const GraphData &graph, const std::vector<Transfer> &transfers, std::vector<TileTraffic> &dense, LinkFlows &flows) {
  const unsigned perIpu = graph.target.getTilesPerIPU();
  std::vector<Sent> sent;
  sent.reserve(transfers.size());
  for (const Transfer &t : transfers)
    sent.push_back({t.sourceTile, t.sourceVar, t.tile / perIpu, t.sourceBegin, t.sourceBegin + t.length});
  std::sort(sent.begin(), sent.end(), [](const Sent &a, const Sent &b) { return std::tie(a.tile, a.var) < std::tie(b.tile, b.var); });
  for (std::size_t first = 0, next; first < sent.size(); first = next) {
    const std::uint32_t tile = sent[first].tile, var = sent[first].var;
    Wanted wanted;
    for (next = first; next < sent.size() && sent[next].tile == tile && sent[next].var == var; ++next)
      wanted.add(sent[next]);
    const std::uint64_t size = graph.variables[var].type.size();
    wanted.each([&](Index elements, const std::map<std::uint32_t, int> &ipus) {
      const std::uint64_t bytes = std::uint64_t(elements) * size;
      std::vector<unsigned> others;
      for (const auto &[ipu, count] : ipus)
        if (ipu != tile / perIpu)
          others.push_back(ipu);
      dense[tile].sent += bytes;
      if (others.empty())
        return;
      dense[tile].linkSent += bytes;
      flows[{tile / perIpu, others}] += double(bytes);
    });
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
  LinkFlows flows;
  countReceived(graph, transfers, dense, exchange);
  countSent(graph, transfers, dense, flows);
  const double width = model.exchangeBytesPerCycle > 0 ? model.exchangeBytesPerCycle : target.getExchangeBytesPerCycle();
  for (std::uint32_t tile = 0; tile < dense.size(); ++tile) {
    TileTraffic &t = dense[tile];
    const std::uint64_t received = t.received + t.linkReceived;
    if (received + t.sent == 0)
      continue;
    t.tile = tile;
    exchange.cycles = std::max(exchange.cycles, std::ceil(double(std::max(received, t.sent)) / width) + model.fragmentCycles * t.fragments);
    exchange.tiles.push_back(t);
  }
  exchange.linkCycles = std::max(0.0, std::ceil(linkCycles(target, flows)) - exchange.cycles);
  return exchange;
}

} // namespace poplar::core
