// Graphs and tensors as JSON.
#include <set>

#include "archive.hpp"
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

void writeTensorsJson(std::ostream &os, const GraphData &graph, ArrayRef<Tensor> tensors, const std::string &archive) {
  static constexpr char digits[] = "0123456789abcdef";
  std::set<std::uint32_t> used;
  os << "{\"tensors\": ";
  listed(os, tensors, [&](const Tensor &t) {
    os << "{\"type\": " << quoted(t.elementType().toString()) << ", \"shape\": ";
    listed(os, t.shape(), [&](std::size_t d) { os << d; });
    os << ", \"elements\": ";
    listed(os, runsOf(t.data().view)->runs, [&](const Run &r) {
      used.insert(r.var);
      os << "{\"variable\": " << r.var << ", \"start\": " << r.start << ", \"stride\": " << r.stride << ", \"count\": " << r.count << "}";
    });
    os << "}";
  });
  os << ",\n \"variables\": {";
  const char *between = "";
  for (const std::uint32_t var : used) {
    os << between << '"' << var << "\": ";
    writeVariable(os, graph.variables[var]);
    between = ", ";
  }
  os << "},\n \"archive\": \"";
  for (const char c : archive)
    os << digits[static_cast<unsigned char>(c) >> 4] << digits[c & 15];
  os << "\"}\n";
}

std::string archiveInJson(const std::string &text) {
  const auto digit = [&](std::size_t at) -> unsigned {
    const char c = at < text.size() ? text[at] : '\0';
    require((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'), "its archive contains a character that is not a hexadecimal digit");
    return unsigned(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  // Quotation marks within names follow a backslash, so this finds the key alone.
  const std::string key = "\"archive\"";
  std::size_t at = text.find(key);
  require(at != std::string::npos, "it is JSON without an archive of tensors");
  at = text.find('"', at + key.size());
  require(at != std::string::npos, "its archive is missing");
  std::string bytes;
  for (++at; at < text.size() && text[at] != '"'; at += 2)
    bytes += char(digit(at) << 4 | digit(at + 1));
  return bytes;
}

} // namespace poplar::core
