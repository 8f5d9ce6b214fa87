#ifndef SNNC_POPNN_CODELETS_HPP
#define SNNC_POPNN_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace popnn {
/// Makes the library's vertices known to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace popnn
#endif
