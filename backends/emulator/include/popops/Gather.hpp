// Rows selected by index.
#ifndef SNNC_POPOPS_GATHER_HPP
#define SNNC_POPOPS_GATHER_HPP

#include <cstddef>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

struct GatherParams {
  GatherParams() = default;
  explicit GatherParams(std::size_t elements) : maxElementsPerTile(elements) {}
  std::size_t maxElementsPerTile = 65535;
};

/// A tensor to gather from along `axis`.
poplar::Tensor createGatherInput(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &operandShape, unsigned axis,
                                 GatherParams params = {}, const poplar::DebugContext &context = {});
/// Dimension `axis` is replaced by the shape of `indices`.
poplar::Tensor gather(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &indices, unsigned axis,
                      poplar::program::Sequence &prog, GatherParams params, const poplar::DebugContext &context = {},
                      const poplar::OptionFlags &options = {});
inline poplar::Tensor gather(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &indices, unsigned axis,
                             poplar::program::Sequence &prog, const poplar::DebugContext &context = {}) {
  return gather(graph, input, indices, axis, prog, GatherParams(), context);
}

} // namespace popops

#endif
