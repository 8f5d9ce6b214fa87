#include "race.hpp"

#include <poplar/exceptions.hpp>

#include <algorithm>
#include <tuple>
#include <vector>

#include "graph_data.hpp"

namespace poplar::core {

namespace {

struct Touch {
  std::uint32_t var, vertex, edge;
  Index begin, end;
  bool repeated; // the elements occur in the field more than once
};

bool repeats(const Block &b) { return (b.n0 > 1 && b.s0 == 0) || (b.n1 > 1 && b.s1 == 0); }

[[noreturn]] void throwRace(const GraphData &graph, std::uint32_t computeSet, const Touch &writer, const Touch &other, const char *does) {
  const Index begin = std::max(writer.begin, other.begin), end = std::min(writer.end, other.end);
  throw graph_connection_error("compute set '" + graph.computeSets[computeSet].name + "': " + graph.vertexName(writer.vertex) + " writes " +
                               graph.elementName(writer.var, begin, end) + ", which " + graph.vertexName(other.vertex) + " " + does +
                               " in the same compute set");
}

template <class Wanted, class F> void forEachTouch(const GraphData &graph, std::uint32_t computeSet, Wanted &&wanted, F &&f) {
  for (std::uint32_t v : graph.computeSets[computeSet].vertices) {
    const VertexData &vertex = graph.vertices[v];
    for (std::uint32_t e = 0; e < vertex.edges.size(); ++e) {
      const Edge &edge = vertex.edges[e];
      const bool writes = vertex.type->fields[edge.field].writes();
      for (std::uint32_t b = edge.firstBlock; b < edge.firstBlock + edge.numBlocks; ++b)
        if (wanted(graph.blocks[b], writes))
          forEachInterval(graph.blocks[b], [&](Index begin, Index end) {
            f(Touch{graph.blocks[b].var, v, e, begin, end, repeats(graph.blocks[b])});
          });
    }
  }
}

/// One field contains the element twice, so the value that is kept would be undefined.
[[noreturn]] void throwAlias(const GraphData &graph, std::uint32_t computeSet, const Touch &twice, Index end) {
  const VertexData &vertex = graph.vertices[twice.vertex];
  throw graph_connection_error("compute set '" + graph.computeSets[computeSet].name + "': field '" +
                               vertex.type->fields[vertex.edges[twice.edge].field].name + "' of " + graph.vertexName(twice.vertex) +
                               " writes " + graph.elementName(twice.var, twice.begin, std::min(end, twice.end)) + " twice");
}

/// Sorted by variable and begin; throws if two vertices, or two elements of one field, write the same element. Ranges of one
/// vertex are joined, so the resulting ranges are disjoint.
void joinWrites(const GraphData &graph, std::uint32_t computeSet, std::vector<Touch> &writes) {
  const auto before = [](const Touch &a, const Touch &b) { return std::tie(a.var, a.begin) < std::tie(b.var, b.begin); };
  if (!std::is_sorted(writes.begin(), writes.end(), before))
    std::sort(writes.begin(), writes.end(), before);
  std::size_t kept = 0;
  Index ofLastEdge = 0; // the end of the latest range of the same edge
  for (const Touch &w : writes) {
    if (w.repeated)
      throwAlias(graph, computeSet, w, w.end);
    if (kept > 0 && writes[kept - 1].var == w.var && writes[kept - 1].end >= w.begin) {
      Touch &last = writes[kept - 1];
      if (last.vertex == w.vertex) {
        if (last.edge == w.edge && ofLastEdge > w.begin)
          throwAlias(graph, computeSet, w, ofLastEdge);
        last.edge = w.edge;
        last.end = std::max(last.end, w.end);
        ofLastEdge = w.end;
        continue;
      }
      if (last.end > w.begin)
        throwRace(graph, computeSet, last, w, "writes");
    }
    writes[kept++] = w;
    ofLastEdge = w.end;
  }
  writes.resize(kept);
}

} // namespace

void checkRaces(const GraphData &graph, std::uint32_t computeSet) {
  std::vector<Touch> writes;
  std::vector<bool> written(graph.variables.size(), false);
  forEachTouch(graph, computeSet, [](const Block &, bool isWrite) { return isWrite; },
               [&](const Touch &touch) {
                 written[touch.var] = true;
                 writes.push_back(touch);
               });
  joinWrites(graph, computeSet, writes);
  forEachTouch(graph, computeSet, [&](const Block &block, bool isWrite) { return !isWrite && written[block.var]; },
               [&](const Touch &read) {
                 auto w = std::upper_bound(writes.begin(), writes.end(), read, [](const Touch &a, const Touch &b) {
                   return std::tie(a.var, a.begin) < std::tie(b.var, b.end);
                 });
                 for (; w != writes.end() && w->var == read.var && w->begin < read.end; ++w)
                   if (w->end > read.begin && w->vertex != read.vertex)
                     throwRace(graph, computeSet, *w, read, "reads");
               });
}

} // namespace poplar::core
