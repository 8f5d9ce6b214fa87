// Normalisation of groups of channels of each sample. Groups are consecutive channels; with the option
// groupNormStridedChannelGrouping = true, channels at a distance of the number of groups. Statistics are [groups of all samples], those
// of a sample together.
#ifndef SNNC_POPNN_GROUP_NORM_HPP
#define SNNC_POPNN_GROUP_NORM_HPP

#include <utility>

#include <poplin/Norms.hpp>

namespace popnn {
namespace gn {

/// Mean and inverse standard deviation of every group of channels of every sample.
std::pair<poplar::Tensor, poplar::Tensor> groupNormStatistics(poplar::Graph &graph, const poplar::Tensor acts, float eps,
                                                              poplar::program::Sequence &prog, unsigned numGroups, bool unbiasedVarEstimate,
                                                              bool stableAlgo = false, const poplar::Type &partialsType = poplar::FLOAT,
                                                              const poplar::DebugContext &context = {},
                                                              const poplar::OptionFlags &options = {});
/// (acts - mean) x invStdDev
poplar::Tensor groupNormWhiten(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &mean,
                               const poplar::Tensor &invStdDev, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                               const poplar::OptionFlags &options = {});
/// Returns the normalised and the whitened activations.
std::pair<poplar::Tensor, poplar::Tensor> groupNormalise(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gamma,
                                                         const poplar::Tensor &beta, const poplar::Tensor &mean,
                                                         const poplar::Tensor &invStdDev, poplar::program::Sequence &prog,
                                                         const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// The gradients of gamma and of beta, from activations or from whitened activations.
std::pair<poplar::Tensor, poplar::Tensor>
groupNormParamGradients(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn, const poplar::Tensor &mean,
                        const poplar::Tensor &invStdDev, poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
std::pair<poplar::Tensor, poplar::Tensor> groupNormParamGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened,
                                                                  const poplar::Tensor &gradsIn, poplar::program::Sequence &prog,
                                                                  const poplar::Type &partialsType = poplar::FLOAT,
                                                                  const poplar::DebugContext &context = {},
                                                                  const poplar::OptionFlags &options = {});
/// The gradient of the activations.
poplar::Tensor groupNormGradients(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,
                                  const poplar::Tensor &mean, const poplar::Tensor &invStdDev, const poplar::Tensor &gamma,
                                  poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
                                  const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
poplar::Tensor groupNormGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,
                                  const poplar::Tensor &invStdDev, const poplar::Tensor &gamma, poplar::program::Sequence &prog,
                                  const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &context = {},
                                  const poplar::OptionFlags &options = {});
/// Parameters += scale x gradients.
void groupNormParamUpdate(poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta, float scale,
                          poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,
                          const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void groupNormParamUpdate(poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta,
                          const poplar::Tensor &scale, poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,
                          const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

} // namespace gn
} // namespace popnn

#endif
