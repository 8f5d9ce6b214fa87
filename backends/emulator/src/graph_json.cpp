// A graph as JSON.
#include "graph_data.hpp"
#include "json_text.hpp"

namespace poplar::core {

namespace {

/// Calls f for each value, with commas between them.
template <class List, class F> void listed(std::ostream &os, const List &values, F &&f) {
  os << "[";
  bool first = true;
  for (const auto &value : values) {
    os << (first ? "" : ", ");
    first = false;
    f(value);
  }
  os << "]";
}

void writeVariable(std::ostream &os, const Variable &v) {
  os << "{\"name\": " << quoted(v.name) << ", \"type\": " << quoted(v.type.toString()) << ", \"shape\": ";
  listed(os, v.shape, [&](std::size_t d) { os << d; });
  os << ", \"constant\": " << (v.constant ? "true" : "false") << ", \"tiles\": ";
  listed(os, v.tiles.pieces(), [&](const Piece &p) { os << "[" << p.begin << ", " << p.end << ", " << p.tile << "]"; });
  os << "}";
}

void writeVertex(std::ostream &os, const GraphData &graph, const VertexData &v) {
  os << "{\"type\": " << quoted(v.type->name) << ", \"tile\": " << (v.tile == ~0u ? -1 : std::int64_t(v.tile)) << ", \"edges\": ";
  listed(os, v.edges, [&](const Edge &e) {
    os << "{\"field\": " << quoted(v.type->fields[e.field].name) << ", \"elements\": " << e.elements << ", \"variables\": [";
    for (std::uint32_t b = 0; b < e.numBlocks; ++b)
      os << (b ? ", " : "") << graph.blocks[e.firstBlock + b].var;
    os << "]}";
  });
  os << "}";
}

} // namespace

void writeGraphJson(std::ostream &os, const GraphData &graph) {
  os << "{\"tiles\": " << graph.target.getNumTiles() << ", \"ipus\": " << graph.target.getNumIPUs() << ", \"replicas\": " << graph.replicas
     << ",\n \"variables\": ";
  listed(os, graph.variables, [&](const Variable &v) { writeVariable(os, v); });
  os << ",\n \"compute_sets\": ";
  listed(os, graph.computeSets, [&](const ComputeSetData &c) {
    os << "{\"name\": " << quoted(c.name) << ", \"vertices\": ";
    listed(os, c.vertices, [&](std::uint32_t v) { writeVertex(os, graph, graph.vertices[v]); });
    os << "}";
  });
  os << "}\n";
}

} // namespace poplar::core
