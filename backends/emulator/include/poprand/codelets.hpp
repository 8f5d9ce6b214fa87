#ifndef SNNC_POPRAND_CODELETS_HPP
#define SNNC_POPRAND_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace poprand {
/// Makes the library's vertices known to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace poprand
#endif
