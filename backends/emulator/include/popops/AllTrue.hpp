// Whether a whole tensor is true.
#ifndef SNNC_POPOPS_ALL_TRUE_HPP
#define SNNC_POPOPS_ALL_TRUE_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// BOOL {}: whether every element of a BOOL tensor is true.
poplar::Tensor allTrue(poplar::Graph &graph, poplar::Tensor A, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popops
#endif
