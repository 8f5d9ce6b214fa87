// The vertices of popsparse.
#ifndef SNNC_POPSPARSE_CODELETS_HPP
#define SNNC_POPSPARSE_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace popsparse {
/// Adds the library's vertices to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace popsparse
#endif
