// Tensors for copies from and to rows of remote buffers and streams.
#ifndef SNNC_POPOPS_HOST_SLICE_TENSOR_HPP
#define SNNC_POPOPS_HOST_SLICE_TENSOR_HPP

#include <vector>

#include <poplar/Graph.hpp>

namespace popops {

struct IndicesAndTensor {
  poplar::Tensor indices, tensor;
};
/// `shape` is {rows, elements of a row}; one index per row.
IndicesAndTensor createHostSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                           bool isRead, const poplar::DebugContext &context = {});
/// `offset`: bytes of other tensors on the preceding tiles.
IndicesAndTensor createHostSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                           bool isRead, std::size_t offset, const poplar::DebugContext &context = {});
poplar::Tensor createHostTransferableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                            bool isRead, const poplar::DebugContext &context = {});
poplar::Tensor createHostTransferableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                            bool isRead, std::size_t offset, const poplar::DebugContext &context = {});

} // namespace popops

#endif
