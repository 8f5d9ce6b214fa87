// The vertices of popnn.
#ifndef SNNC_POPNN_CODELETS_HPP
#define SNNC_POPNN_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace popnn {
/// Adds the library's vertices to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace popnn
#endif
