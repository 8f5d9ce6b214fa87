// Sorting along a dimension.
#ifndef SNNC_POPOPS_SORT_HPP
#define SNNC_POPOPS_SORT_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// Sorts in ascending order along a dimension.
poplar::Tensor sort(poplar::Graph &graph, const poplar::Tensor &t, unsigned dim, poplar::program::Sequence &prog,
                    const poplar::DebugContext &context = {});
void sortInPlace(poplar::Graph &graph, const poplar::Tensor &t, unsigned dim, poplar::program::Sequence &prog,
                 const poplar::DebugContext &context = {});
/// Returns the values `v` in the ascending order of their keys `k`; in place, keys and values are reordered.
poplar::Tensor sortKeyValue(poplar::Graph &graph, const poplar::Tensor &k, const poplar::Tensor &v, unsigned dim,
                            poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
void sortKeyValueInPlace(poplar::Graph &graph, const poplar::Tensor &k, const poplar::Tensor &v, unsigned dim,
                         poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popops
#endif
