// Definitions of vertices.hpp.
#include "vertices.hpp"

namespace snnc {

VertexBuilder::VertexBuilder(poplar::Graph &made, const poplar::ComputeSet &set, const char *codelet, unsigned tile)
    : graph(made), vertex(graph.addVertex(set, codelet)) {
  graph.setTileMapping(vertex, tile);
}

VertexBuilder &VertexBuilder::edge(const char *field, const poplar::Tensor &tensor) {
  graph.connect(vertex[field], tensor);
  return *this;
}

VertexBuilder &VertexBuilder::number(const char *field, unsigned value) {
  graph.setInitialValue(vertex[field], value);
  return *this;
}

VertexBuilder &VertexBuilder::integer(const char *field, int value) {
  graph.setInitialValue(vertex[field], value);
  return *this;
}

poplar::Tensor whole_number(poplar::Graph &graph, int value) {
  const poplar::Tensor made = graph.addConstant<int>(poplar::INT, {}, value);
  graph.setTileMapping(made, 0);
  return made;
}

} // namespace snnc
