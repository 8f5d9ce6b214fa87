#ifndef SNNC_POPSPARSE_CODELETS_HPP
#define SNNC_POPSPARSE_CODELETS_HPP
#include <poplar/Graph.hpp>
namespace popsparse {
/// Makes the library's vertices known to the graph.
void addCodelets(poplar::Graph &graph);
} // namespace popsparse
#endif
