// Normalisation of every channel over all samples and the field: [batch, channels, field...].
#ifndef SNNC_POPNN_BATCH_NORM_HPP
#define SNNC_POPNN_BATCH_NORM_HPP

#include <utility>

#include <poplin/Norms.hpp>

namespace popnn {
namespace bn {

/// Mean and inverse standard deviation of every channel.
std::pair<poplar::Tensor, poplar::Tensor> batchNormStatistics(poplar::Graph &graph, const poplar::Tensor acts, float eps,
                                                              poplar::program::Sequence &prog, bool unbiasedVarEstimate,
                                                              bool stableAlgo = false, const poplar::Type &partialsType = poplar::FLOAT,
                                                              const poplar::DebugContext &context = {},
                                                              const poplar::OptionFlags &options = {});
/// (acts - mean) x invStdDev
poplar::Tensor batchNormWhiten(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &mean,
                               const poplar::Tensor &invStdDev, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                               const poplar::OptionFlags &options = {});
/// Returns the normalised and the whitened activations.
std::pair<poplar::Tensor, poplar::Tensor> batchNormalise(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gamma,
                                                         const poplar::Tensor &beta, const poplar::Tensor &mean,
                                                         const poplar::Tensor &invStdDev, poplar::program::Sequence &prog,
                                                         const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// The gradients of gamma and of beta, from activations or from whitened activations.
std::pair<poplar::Tensor, poplar::Tensor>
batchNormParamGradients(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn, const poplar::Tensor &mean,
                        const poplar::Tensor &invStdDev, poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
std::pair<poplar::Tensor, poplar::Tensor> batchNormParamGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened,
                                                                  const poplar::Tensor &gradsIn, poplar::program::Sequence &prog,
                                                                  const poplar::Type &partialsType = poplar::FLOAT,
                                                                  const poplar::DebugContext &context = {},
                                                                  const poplar::OptionFlags &options = {});
/// The gradient of the activations.
poplar::Tensor batchNormGradients(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,
                                  const poplar::Tensor &mean, const poplar::Tensor &invStdDev, const poplar::Tensor &gamma,
                                  poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
                                  const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
poplar::Tensor batchNormGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,
                                  const poplar::Tensor &invStdDev, const poplar::Tensor &gamma, poplar::program::Sequence &prog,
                                  const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &context = {},
                                  const poplar::OptionFlags &options = {});
/// Parameters += scale x gradients.
void batchNormParamUpdate(poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta, float scale,
                          poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,
                          const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void batchNormParamUpdate(poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta,
                          const poplar::Tensor &scale, poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,
                          const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// acts x multiplicand + addend
poplar::Tensor batchNormalise(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &combinedMultiplicand,
                              const poplar::Tensor &addend, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                              const poplar::OptionFlags &options = {});
/// Statistics and gradients over several replicas: `callback` sums over the replicas that share normBatchSize samples.
std::pair<poplar::Tensor, poplar::Tensor>
distributedBatchNormStatistics(poplar::Graph &replicatedGraph, const poplar::Tensor acts, float eps, poplar::program::Sequence &prog,
                               bool unbiasedVarEstimate, poplin::DistributedNormReduceCallback callback, unsigned normBatchSize,
                               bool stableAlgo = false, const poplar::Type &partialsType = poplar::FLOAT,
                               const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
poplar::Tensor distributedBatchNormGradients(poplar::Graph &replicatedGraph, const poplar::Tensor &actsWhitened,
                                             const poplar::Tensor &gradsIn, const poplar::Tensor &invStdDev, const poplar::Tensor &gamma,
                                             poplar::program::Sequence &prog, poplin::DistributedNormReduceCallback callback,
                                             unsigned normBatchSize, const poplar::Type &partialsType = poplar::FLOAT,
                                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
poplar::Tensor distributedBatchNormGradients(poplar::Graph &replicatedGraph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,
                                             const poplar::Tensor &mean, const poplar::Tensor &invStdDev, const poplar::Tensor &gamma,
                                             poplar::program::Sequence &prog, poplin::DistributedNormReduceCallback callback,
                                             unsigned normBatchSize, const poplar::Type &partialsType = poplar::FLOAT,
                                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

} // namespace bn
} // namespace popnn

#endif
