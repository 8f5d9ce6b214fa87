// Normalisation of each channel of each sample over the field.
#ifndef SNNC_POPNN_INSTANCE_NORM_HPP
#define SNNC_POPNN_INSTANCE_NORM_HPP

#include <utility>

#include <popnn/GroupNorm.hpp>

namespace popnn {
namespace in {

/// Mean and inverse standard deviation of every channel.
inline std::pair<poplar::Tensor, poplar::Tensor> instanceNormStatistics(poplar::Graph &graph, const poplar::Tensor acts, float eps,
                                                                        poplar::program::Sequence &prog, bool unbiasedVarEstimate,
                                                                        bool stableAlgo, const poplar::Type &partialsType = poplar::FLOAT,
                                                                        const poplar::DebugContext &context = {},
                                                                        const poplar::OptionFlags &options = {}) {
  return gn::groupNormStatistics(graph, acts, eps, prog, unsigned(acts.dim(1)), unbiasedVarEstimate, stableAlgo, partialsType, context,
                                 options);
}
/// (acts - mean) x invStdDev
inline poplar::Tensor instanceNormWhiten(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &mean,
                                         const poplar::Tensor &invStdDev, poplar::program::Sequence &prog,
                                         const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {
  return gn::groupNormWhiten(graph, acts, mean, invStdDev, prog, context, options);
}
/// Returns the normalised and the whitened activations.
inline std::pair<poplar::Tensor, poplar::Tensor>
instanceNormalise(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gamma, const poplar::Tensor &beta,
                  const poplar::Tensor &mean, const poplar::Tensor &invStdDev, poplar::program::Sequence &prog,
                  const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {
  return gn::groupNormalise(graph, acts, gamma, beta, mean, invStdDev, prog, context, options);
}
/// The gradients of gamma and of beta, from activations or from whitened activations.
inline std::pair<poplar::Tensor, poplar::Tensor>
instanceNormParamGradients(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn, const poplar::Tensor &mean,
                           const poplar::Tensor &invStdDev, poplar::program::Sequence &prog,
                           const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &context = {},
                           const poplar::OptionFlags &options = {}) {
  return gn::groupNormParamGradients(graph, acts, gradsIn, mean, invStdDev, prog, partialsType, context, options);
}
inline std::pair<poplar::Tensor, poplar::Tensor> instanceNormParamGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened,
                                                                            const poplar::Tensor &gradsIn, poplar::program::Sequence &prog,
                                                                            const poplar::Type &partialsType = poplar::FLOAT,
                                                                            const poplar::DebugContext &context = {},
                                                                            const poplar::OptionFlags &options = {}) {
  return gn::groupNormParamGradients(graph, actsWhitened, gradsIn, prog, partialsType, context, options);
}
/// The gradient of the activations.
inline poplar::Tensor instanceNormGradients(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,
                                            const poplar::Tensor &mean, const poplar::Tensor &invStdDev, const poplar::Tensor &gamma,
                                            poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
                                            const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {
  return gn::groupNormGradients(graph, acts, gradsIn, mean, invStdDev, gamma, prog, partialsType, context, options);
}
inline poplar::Tensor instanceNormGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,
                                            const poplar::Tensor &invStdDev, const poplar::Tensor &gamma, poplar::program::Sequence &prog,
                                            const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &context = {},
                                            const poplar::OptionFlags &options = {}) {
  return gn::groupNormGradients(graph, actsWhitened, gradsIn, invStdDev, gamma, prog, partialsType, context, options);
}
/// Parameters += scale x gradients.
inline void instanceNormParamUpdate(poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta, float scale,
                                    poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,
                                    const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {
  gn::groupNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, context, options);
}
inline void instanceNormParamUpdate(poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta,
                                    const poplar::Tensor &scale, poplar::Tensor &gamma, poplar::Tensor &beta,
                                    poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                    const poplar::OptionFlags &options = {}) {
  gn::groupNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, context, options);
}

} // namespace in
} // namespace popnn

#endif
