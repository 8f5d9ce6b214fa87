// Connectionist temporal classification: the loss of a sequence whose labels are not aligned with its steps, and its gradient.
//
// Source: A. Graves et al., Connectionist Temporal Classification, ICML 2006.
#ifndef SNNC_POPNN_CTC_LOSS_HPP
#define SNNC_POPNN_CTC_LOSS_HPP

#include <cstddef>
#include <utility>

#include <popnn/CTCPlan.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace popnn {
namespace ctc {

Plan plan(const poplar::Graph &graph, const poplar::Type &inType, const poplar::Type &outType, unsigned batchSize, unsigned maxTime,
          unsigned maxLabelLength, unsigned numClasses, const poplar::OptionFlags &options = {});

/// [maxTime, batchSize, numClasses]
poplar::Tensor createDataInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize, const std::size_t maxTime,
                               const std::size_t numClasses, const Plan &plan, const poplar::DebugContext &context = {});
/// [batchSize, maxLabelLength]
poplar::Tensor createLabelsInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize,
                                 const std::size_t maxLabelLength, const Plan &plan, const poplar::DebugContext &context = {});

/// The losses [batch] and the gradient [time, batch, classes]. Options: includeSoftmaxGradient (true): the gradient is for the softmax's
/// input, otherwise for the logarithms; zeroInfinity (false): a sample whose labels do not fit its steps has a loss
/// and a gradient of 0 instead of infinity and NaN. Steps from a sample's length on have a gradient of 0. Lengths are UNSIGNED_INT [batch].
std::pair<poplar::Tensor, poplar::Tensor>
calcLossAndGradientLogProbabilities(poplar::Graph &graph, const poplar::Type &outType, const poplar::Tensor &logProbs,
                                    const poplar::Tensor &labels, const poplar::Tensor &dataLengths, const poplar::Tensor &labelLengths,
                                    poplar::program::Sequence &prog, const unsigned blankClass, const Plan &plan,
                                    const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// As above, from the values before the softmax.
std::pair<poplar::Tensor, poplar::Tensor>
calcLossAndGradientLogits(poplar::Graph &graph, const poplar::Type &outType, const poplar::Tensor &logits, const poplar::Tensor &labels,
                          const poplar::Tensor &dataLengths, const poplar::Tensor &labelLengths, poplar::program::Sequence &prog,
                          const unsigned blankClass, const Plan &plan, const poplar::DebugContext &context = {},
                          const poplar::OptionFlags &options = {});
/// Only the losses.
poplar::Tensor calcCTCLossLogProbabilities(poplar::Graph &graph, const poplar::Type &outType, const poplar::Tensor &logProbs,
                                           const poplar::Tensor &labels, const poplar::Tensor &dataLengths,
                                           const poplar::Tensor &labelLengths, poplar::program::Sequence &prog, const unsigned blankClass,
                                           const Plan &plan, const poplar::DebugContext &context = {},
                                           const poplar::OptionFlags &options = {});
poplar::Tensor calcCTCLossLogits(poplar::Graph &graph, const poplar::Type &outType, const poplar::Tensor &logits,
                                 const poplar::Tensor &labels, const poplar::Tensor &dataLengths, const poplar::Tensor &labelLengths,
                                 poplar::program::Sequence &prog, const unsigned blankClass, const Plan &plan,
                                 const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

} // namespace ctc
} // namespace popnn

#endif
