// The logarithm of a softmax over the innermost dimension.
#ifndef SNNC_POPNN_LOG_SOFTMAX_HPP
#define SNNC_POPNN_LOG_SOFTMAX_HPP

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popnn {
poplar::Tensor logSoftmax(poplar::Graph &graph, poplar::Tensor t, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
void logSoftmaxInPlace(poplar::Graph &graph, poplar::Tensor t, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popnn

#endif
