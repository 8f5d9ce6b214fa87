#ifndef SNNC_POPLIN_CODELETS_HPP
#define SNNC_POPLIN_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace poplin {
/// Makes the library's vertices known to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace poplin
#endif
