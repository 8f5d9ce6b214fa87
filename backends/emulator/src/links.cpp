#include "links.hpp"

#include <poplar/exceptions.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

namespace poplar::core {

namespace {

using Pair = std::pair<unsigned, unsigned>;
constexpr unsigned none = std::numeric_limits<unsigned>::max();

/// The wires of a target, in both directions. Without wires, all IPUs are connected to one switch.
struct Network {
  unsigned nodes;
  std::map<Pair, double> width;
  /// For each node, its neighbours in the order of preference for being reached through them.
  std::vector<std::vector<unsigned>> neighbours;

  explicit Network(const Target &target) : nodes(target.getNumIPUs() + 1), neighbours(nodes) {
    const EmulatorModel &model = target.getEmulatorModel();
    for (const EmulatorWire &wire : model.wires)
      join(wire.from, wire.to, wire.bytesPerSecond);
    for (unsigned ipu = 0; model.wires.empty() && ipu + 1 < nodes; ++ipu)
      join(ipu, nodes - 1, model.linkBytesPerSecond);
  }

  void join(unsigned a, unsigned b, double bytesPerSecond) {
    if (a == b || std::max(a, b) >= nodes || bytesPerSecond <= 0)
      throw invalid_machine_model("a wire joins IPU " + std::to_string(a) + " and IPU " + std::to_string(b) + " of " +
                                  std::to_string(nodes - 1) + " with " + std::to_string(bytesPerSecond) + " bytes a second");
    for (const Pair &way : {Pair{a, b}, Pair{b, a}}) {
      if (width.count(way) == 0)
        neighbours[way.second].push_back(way.first);
      width[way] += bytesPerSecond;
    }
  }

  /// The predecessor of every node on its route from `source`: the route with fewest wires, then the widest, then the first listed.
  std::vector<unsigned> tree(unsigned source) const {
    std::vector<unsigned> before(nodes, none);
    std::vector<double> wide(nodes, 0);
    std::vector<bool> reached(nodes, false);
    wide[source] = std::numeric_limits<double>::infinity();
    reached[source] = true;
    for (bool grew = true; grew;) {
      std::vector<unsigned> level;
      for (unsigned node = 0; node < nodes; ++node) {
        if (reached[node])
          continue;
        for (unsigned from : neighbours[node]) {
          const double through = std::min(wide[from], width.at({from, node}));
          if (reached[from] && (before[node] == none || through > wide[node])) {
            before[node] = from;
            wide[node] = through;
          }
        }
        if (before[node] != none)
          level.push_back(node);
      }
      for (unsigned node : level)
        reached[node] = true;
      grew = !level.empty();
    }
    return before;
  }
};

} // namespace

double linkCycles(const Target &target, const LinkFlows &flows) {
  if (flows.empty())
    return 0;
  const Network network(target);
  std::map<unsigned, std::vector<unsigned>> trees;
  std::map<Pair, double> load;
  for (const auto &[ends, bytes] : flows) {
    const unsigned source = ends.first;
    if (trees.count(source) == 0)
      trees[source] = network.tree(source);
    std::set<Pair> crossed;
    for (unsigned node : ends.second)
      for (; node != source; node = trees[source][node]) {
        if (trees[source][node] == none)
          throw invalid_machine_model("no wire leads from IPU " + std::to_string(source) + " to IPU " + std::to_string(node));
        crossed.insert({trees[source][node], node});
      }
    for (const Pair &wire : crossed)
      load[wire] += bytes;
  }
  double seconds = 0;
  for (const auto &[wire, bytes] : load)
    seconds = std::max(seconds, bytes / network.width.at(wire));
  return seconds * target.getTileClockFrequency();
}

} // namespace poplar::core
