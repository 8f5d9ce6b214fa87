// The vertices of popops.
#ifndef SNNC_POPOPS_CODELETS_HPP
#define SNNC_POPOPS_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace popops {
/// Adds the library's vertices to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace popops
#endif
