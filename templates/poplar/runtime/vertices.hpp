// Vertices and small variables of a graph.
#ifndef SNNC_VERTICES_HPP
#define SNNC_VERTICES_HPP

#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>

namespace snnc {

/// A vertex under construction.
class VertexBuilder {
public:
  VertexBuilder(poplar::Graph &made, const poplar::ComputeSet &set, const char *codelet, unsigned tile);
  VertexBuilder &edge(const char *field, const poplar::Tensor &tensor);
  VertexBuilder &number(const char *field, unsigned value);
  VertexBuilder &integer(const char *field, int value);

private:
  poplar::Graph &graph;
  poplar::VertexRef vertex;
};

/// Creates an integer on tile 0.
poplar::Tensor whole_number(poplar::Graph &graph, int value);

} // namespace snnc

#endif
