// The vertices of poplin.
#ifndef SNNC_POPLIN_CODELETS_HPP
#define SNNC_POPLIN_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace poplin {
/// Adds the library's vertices to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace poplin
#endif
