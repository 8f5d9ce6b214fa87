#ifndef SNNC_POPOPS_CODELETS_HPP
#define SNNC_POPOPS_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace popops {
/// Makes the library's vertices known to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace popops
#endif
