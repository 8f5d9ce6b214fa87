// The largest or smallest elements of rows.
#ifndef SNNC_POPOPS_TOP_K_HPP
#define SNNC_POPOPS_TOP_K_HPP
#include <utility>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popops/SortOrder.hpp>
namespace popops {
struct TopKParams {
  TopKParams(unsigned count, bool greatest, SortOrder order, bool stable = false)
      : k(count), largest(greatest), sortOrder(order), stableSort(stable) {}
  unsigned k;
  bool largest;
  SortOrder sortOrder;
  bool stableSort;
};
/// Creates the operand of topK.
poplar::Tensor createTopKInput(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                               const poplar::DebugContext &context = {});
inline poplar::Tensor createTopKInput(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                      const TopKParams &, const poplar::DebugContext &context = {}) {
  return createTopKInput(graph, type, shape, context);
}
/// The k largest (or smallest) elements of the last dimension.
poplar::Tensor topK(poplar::Graph &graph, poplar::program::Sequence &prog, const poplar::Tensor &t, const TopKParams &params,
                    const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// These elements with their indices, UNSIGNED_INT.
std::pair<poplar::Tensor, poplar::Tensor> topKWithPermutation(poplar::Graph &graph, poplar::program::Sequence &prog, const poplar::Tensor &t,
                                                              const TopKParams &params, const poplar::DebugContext &context = {},
                                                              const poplar::OptionFlags &options = {});
/// These elements with the elements of `values` at their positions.
std::pair<poplar::Tensor, poplar::Tensor> topKKeyValue(poplar::Graph &graph, poplar::program::Sequence &prog, const poplar::Tensor &keys,
                                                       const poplar::Tensor &values, const TopKParams &params,
                                                       const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
} // namespace popops
#endif
