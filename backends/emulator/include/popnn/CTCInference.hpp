// Connectionist temporal classification: the likeliest labels of a sequence, found by a beam search over their prefixes.
#ifndef SNNC_POPNN_CTC_INFERENCE_HPP
#define SNNC_POPNN_CTC_INFERENCE_HPP

#include <cstddef>
#include <tuple>

#include <popnn/CTCPlan.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace popnn {
namespace ctc_infer {

ctc::Plan plan(const poplar::Graph &graph, const poplar::Type &inType, unsigned batchSize, unsigned maxTime, unsigned numClasses,
               unsigned beamwidth, const poplar::OptionFlags &options = {});

/// [maxTime, batchSize, numClasses]
poplar::Tensor createDataInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize, const std::size_t maxTime,
                               const std::size_t numClasses, const ctc::Plan &plan, const poplar::DebugContext &context = {});

/// Negative logarithms of probabilities [batch, topPaths] of the data's type, lengths UNSIGNED_INT [batch, topPaths] and labels UNSIGNED_INT
/// [batch, topPaths, time], the likeliest first. Labels after the length are the blank class. If there are fewer than topPaths labels,
/// the others have length 0 and an infinite negative logarithm.
std::tuple<poplar::Tensor, poplar::Tensor, poplar::Tensor>
beamSearchDecoderLogProbabilities(poplar::Graph &graph, const poplar::Tensor &logProbs, const poplar::Tensor &dataLengths,
                                  poplar::program::Sequence &prog, unsigned blankClass, unsigned beamwidth, unsigned topPaths,
                                  const ctc::Plan &plan, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// As above, from the values before the softmax.
std::tuple<poplar::Tensor, poplar::Tensor, poplar::Tensor>
beamSearchDecoderLogits(poplar::Graph &graph, const poplar::Tensor &logits, const poplar::Tensor &dataLengths,
                        poplar::program::Sequence &prog, unsigned blankClass, unsigned beamwidth, unsigned topPaths,
                        const ctc::Plan &plan, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

} // namespace ctc_infer
} // namespace popnn

#endif
