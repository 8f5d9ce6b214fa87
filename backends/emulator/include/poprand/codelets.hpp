// The vertices of poprand.
#ifndef SNNC_POPRAND_CODELETS_HPP
#define SNNC_POPRAND_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace poprand {
/// Adds the library's vertices to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace poprand
#endif
