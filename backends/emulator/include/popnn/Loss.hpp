// Losses with their gradients, accuracy, and the largest or smallest elements of rows.
#ifndef SNNC_POPNN_LOSS_HPP
#define SNNC_POPNN_LOSS_HPP
#include <utility>

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popnn {
enum LossType { SUM_SQUARED_LOSS, CROSS_ENTROPY_LOSS };
/// modelOutputs [batch, classes]; expected [batch] class numbers, or a tensor of the outputs' shape for the squared loss. Computes each
/// sample's loss, the gradient of the outputs (of the logits, for cross entropy after a softmax), and the number of correct samples.
poplar::program::Program calcLoss(poplar::Graph &graph, const poplar::Tensor &modelOutputs, const poplar::Tensor &expected,
                                  const poplar::Tensor &loss, const poplar::Tensor &deltas, LossType lossType,
                                  const poplar::DebugContext &context = {});
poplar::program::Program calcLoss(poplar::Graph &graph, const poplar::Tensor &modelOutputs, const poplar::Tensor &expected,
                                  const poplar::Tensor &loss, const poplar::Tensor &deltas, const poplar::Tensor &numCorrect,
                                  LossType lossType, const poplar::DebugContext &context = {});
/// As above, for outputs that were multiplied by `modelOutputScaling`; the gradients are multiplied by `deltasScale`.
poplar::program::Program calcLoss(poplar::Graph &graph, const poplar::Tensor &modelOutputs, const poplar::Tensor &expected,
                                  const poplar::Tensor &loss, const poplar::Tensor &deltas, const poplar::Tensor &deltasScale,
                                  const poplar::Tensor &modelOutputScaling, LossType lossType, const poplar::DebugContext &context = {});
poplar::program::Program calcLoss(poplar::Graph &graph, const poplar::Tensor &modelOutputs, const poplar::Tensor &expected,
                                  const poplar::Tensor &loss, const poplar::Tensor &deltas, const poplar::Tensor &deltasScale,
                                  const poplar::Tensor &modelOutputScaling, const poplar::Tensor &numCorrect, LossType lossType,
                                  const poplar::DebugContext &context = {});
/// The number of rows whose maximum is at the expected position.
poplar::program::Program calcAccuracy(poplar::Graph &graph, const poplar::Tensor &modelOutputs, const poplar::Tensor &expected,
                                      const poplar::Tensor &numCorrect, const poplar::DebugContext &context = {});
/// The index of the largest (smallest) element of each row, UNSIGNED_INT.
poplar::Tensor argMax(poplar::Graph &graph, const poplar::Tensor &input, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
poplar::Tensor argMin(poplar::Graph &graph, const poplar::Tensor &input, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
/// The largest (smallest) element of each row, and its index.
std::pair<poplar::Tensor, poplar::Tensor> maxAndArgMax(poplar::Graph &graph, const poplar::Tensor &input, poplar::program::Sequence &prog,
                                                       const poplar::DebugContext &context = {});
std::pair<poplar::Tensor, poplar::Tensor> minAndArgMin(poplar::Graph &graph, const poplar::Tensor &input, poplar::program::Sequence &prog,
                                                       const poplar::DebugContext &context = {});
/// The K largest elements of each row, in descending order; `indices` becomes their positions.
poplar::Tensor topK(poplar::Graph &graph, const poplar::Tensor &input, poplar::Tensor &indices, unsigned K, bool sort,
                    poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popnn
#endif
