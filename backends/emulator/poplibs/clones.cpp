// poputil/TileMapping.hpp: clones on other tiles.
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include <algorithm>

#include "builtin.hpp"

namespace poputil {

using poplar::Graph;
using poplar::Interval;
using poplar::Tensor;

Tensor createIpuCopy(Graph &graph, const Tensor &tensor, unsigned ipu, Tensor &copySrc, Tensor &copyDst, const poplar::DebugContext &context,
                     poplar::TensorCloneMethod method) {
  const Tensor copy = cloneToIpu(graph, tensor, ipu, context, method);
  copySrc = tensor;
  copyDst = copy;
  return copy;
}

Tensor cloneToGraph(Graph &srcGraph, Graph &dstGraph, const Tensor &tensor, const poplar::DebugContext &context, poplar::TensorCloneMethod) {
  const Graph::TileToTensorMapping mapping = srcGraph.getTileMapping(tensor);
  if (mapping.size() > dstGraph.getTarget().getNumTiles())
    throw poplibs_error("cloneToGraph: the tensor's graph has " + std::to_string(mapping.size()) + " tiles, the other " +
                        std::to_string(dstGraph.getTarget().getNumTiles()));
  const Tensor copy = dstGraph.addVariable(tensor.elementType(), tensor.shape(), context);
  dstGraph.setTileMapping(copy, mapping);
  return copy;
}

std::pair<Tensor, unsigned> cloneAndExpandAliasing(Graph &graph, const Tensor &tensor, unsigned offset, const poplar::DebugContext &context) {
  const Tensor copy = graph.addVariable(tensor.elementType(), tensor.shape(), context);
  if (!tensor.containsAliases()) {
    graph.setTileMapping(copy, graph.getTileMapping(tensor));
    return {copy, offset};
  }
  const auto [mapping, next] = calcLinearTileMappingAndNewOffset(graph, copy, offset);
  graph.setTileMapping(copy, mapping);
  return {copy, next};
}

Tensor createBroadcastOperand(Graph &graph, const Tensor &fullTensor, const poplar::Type &type, unsigned dim, bool ditherMapping,
                              const poplar::DebugContext &context) {
  if (dim >= fullTensor.rank() || fullTensor.numElements() == 0)
    throw poplibs_error("createBroadcastOperand: dimension " + std::to_string(dim) + " of a tensor of shape " + fullTensor.shapeToString());
  const Tensor first = fullTensor.dimRoll(dim).flatten(1, fullTensor.rank()).slice(0, 1, 1).flatten();
  const Tensor operand = graph.addVariable(type, {first.numElements()}, context);
  Graph::TileToTensorMapping mapping = graph.getTileMapping(first);
  if (ditherMapping)
    std::rotate(mapping.begin(), mapping.begin() + std::ptrdiff_t(chooseMappingOffset(mapping.size(), operand.shape())), mapping.end());
  graph.setTileMapping(operand, mapping);
  return operand;
}

} // namespace poputil
