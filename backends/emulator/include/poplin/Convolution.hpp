// Convolutions over any number of dimensions.
#ifndef SNNC_POPLIN_CONVOLUTION_HPP
#define SNNC_POPLIN_CONVOLUTION_HPP

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/ConvParams.hpp>
#include <poplin/MatMul.hpp>

namespace poplin {

/// [batch, channels, field…]
poplar::Tensor createInput(poplar::Graph &graph, const ConvParams &params, const poplar::DebugContext &context = {},
                           const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// [groups, output channels, input channels, kernel…], channels of a group.
poplar::Tensor createWeights(poplar::Graph &graph, const ConvParams &params, const poplar::DebugContext &context = {},
                             const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// One a channel of `activations`.
poplar::Tensor createBiases(poplar::Graph &graph, const poplar::Tensor &activations, const poplar::DebugContext &context = {},
                            const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
void addBias(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &biases, poplar::program::Sequence &prog,
             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// [batch, output channels, field…]. `transposeAndFlipWeights`: the weights are those of the forward pass, this is the backward one.
poplar::Tensor convolution(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &weights, const ConvParams &params,
                           bool transposeAndFlipWeights, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                           const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// The gradient of the weights; `params` are those of the forward pass.
poplar::Tensor calculateWeightDeltas(poplar::Graph &graph, const poplar::Tensor &zDeltas, const poplar::Tensor &activations,
                                     const ConvParams &params, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                     const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// weights += scale x gradient
void convolutionWeightUpdate(poplar::Graph &graph, const poplar::Tensor &zDeltas, const poplar::Tensor &weights,
                             const poplar::Tensor &activations, const ConvParams &params, float scale, poplar::program::Sequence &prog,
                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                             PlanningCache *cache = nullptr);

} // namespace poplin

#endif
