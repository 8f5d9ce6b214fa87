// Parts of normalisations over [batch, channels, field...]: statistics are per channel.
#ifndef SNNC_POPLIN_NORMS_HPP
#define SNNC_POPLIN_NORMS_HPP

#include <functional>
#include <utility>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace poplin {

/// One value per channel; `type` defaults to that of `acts`.
poplar::Tensor createNormGamma(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Type &type,
                               const poplar::DebugContext &context = {});
poplar::Tensor createNormGamma(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::DebugContext &context = {});
poplar::Tensor createNormBeta(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Type &type,
                              const poplar::DebugContext &context = {});
poplar::Tensor createNormBeta(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::DebugContext &context = {});
/// Gamma and beta.
std::pair<poplar::Tensor, poplar::Tensor> createNormParams(poplar::Graph &graph, const poplar::Tensor &acts,
                                                           const poplar::DebugContext &context = {});

/// Mean and 1 / sqrt(variance + eps) of every channel. The variance is the mean square minus the square of the mean, not below 0; with
/// `stableAlgo` it is the mean square of the differences from the mean.
std::pair<poplar::Tensor, poplar::Tensor> normStatistics(poplar::Graph &graph, const poplar::Tensor &acts, float eps,
                                                         poplar::program::Sequence &prog, bool unbiasedVarEstimate, bool stableAlgo = false,
                                                         const poplar::Type &partialsType = poplar::FLOAT,
                                                         const poplar::DebugContext &context = {});

/// Sums tensors over the replicas that share statistics.
using DistributedNormReduceCallback = std::function<std::vector<poplar::Tensor>(
    poplar::Graph &replicatedGraph, const std::vector<poplar::Tensor> &inputsToReduce, poplar::program::Sequence &prog, unsigned groupSize,
    const poplar::DebugContext &context, const poplar::OptionFlags &options)>;
/// Statistics over `normSize` samples, which normSize / batch replicas share.
std::pair<poplar::Tensor, poplar::Tensor>
distributedNormStatistics(poplar::Graph &replicatedGraph, const poplar::Tensor &acts, float eps, poplar::program::Sequence &prog,
                          bool unbiasedVarEstimate, DistributedNormReduceCallback callback, unsigned normSize, bool stableAlgo = false,
                          const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &context = {});
/// (acts - mean) x invStdDev
poplar::Tensor normWhiten(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &mean, const poplar::Tensor &invStdDev,
                          poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
/// whitened x gamma + beta
poplar::Tensor normalise(poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gamma, const poplar::Tensor &beta,
                         poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
/// The gradients of gamma and of beta.
std::pair<poplar::Tensor, poplar::Tensor> normParamGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened,
                                                             const poplar::Tensor &gradsIn, poplar::program::Sequence &prog,
                                                             const poplar::Type &partialsType = poplar::FLOAT,
                                                             const poplar::DebugContext &context = {});
/// The gradient of the whitened activations.
poplar::Tensor normGradients(poplar::Graph &graph, const poplar::Tensor &gradsIn, const poplar::Tensor &gamma,
                             poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
/// The gradient of the activations, through whitening and the statistics.
poplar::Tensor normStatisticsGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,
                                       const poplar::Tensor &invStdDev, poplar::program::Sequence &prog,
                                       const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &context = {});
poplar::Tensor distributedNormStatisticsGradients(poplar::Graph &replicatedGraph, const poplar::Tensor &actsWhitened,
                                                  const poplar::Tensor &gradsIn, const poplar::Tensor &invStdDev,
                                                  poplar::program::Sequence &prog, DistributedNormReduceCallback callback,
                                                  unsigned normSize, const poplar::Type &partialsType = poplar::FLOAT,
                                                  const poplar::DebugContext &context = {});

} // namespace poplin

#endif
