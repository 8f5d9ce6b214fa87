// Convolutions over any number of dimensions.
#ifndef SNNC_POPLIN_CONVOLUTION_HPP
#define SNNC_POPLIN_CONVOLUTION_HPP

#include <cstdint>
#include <set>
#include <tuple>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/ConvParams.hpp>
#include <poplin/MatMul.hpp>

namespace poplin {

/// [batch, channels, field…]
poplar::Tensor createInput(poplar::Graph &graph, const ConvParams &params, const poplar::DebugContext &context = {},
                           const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// [groups, output channels, input channels, kernel…], channels per group.
poplar::Tensor createWeights(poplar::Graph &graph, const ConvParams &params, const poplar::DebugContext &context = {},
                             const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// One per channel of `activations`.
poplar::Tensor createBiases(poplar::Graph &graph, const poplar::Tensor &activations, const poplar::DebugContext &context = {},
                            const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
inline poplar::Tensor createBiases(poplar::Graph &graph, const poplar::Tensor &activations, const ConvParams &,
                                   const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                   PlanningCache *cache = nullptr) {
  return createBiases(graph, activations, context, options, cache);
}
/// [batch, output channels, field…]
poplar::Tensor createConvOutput(poplar::Graph &graph, const ConvParams &params, const poplar::DebugContext &context = {},
                                const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
void addBias(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &biases, poplar::program::Sequence &prog,
             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// [batch, output channels, field…]. `transposeAndFlipWeights`: the weights are those of the forward pass, for the backward pass.
poplar::Tensor convolution(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &weights, const ConvParams &params,
                           bool transposeAndFlipWeights, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                           const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
void convolutionWithOutput(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &weights, const poplar::Tensor &out,
                           const ConvParams &params, bool transposeAndFlipWeights, poplar::program::Sequence &prog,
                           const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// `weightsOut` gets the kernel reversed in every dimension, with input and output channels exchanged.
void weightsTransposeChansFlipXY(poplar::Graph &graph, const poplar::Tensor &weightsIn, const poplar::Tensor &weightsOut,
                                 poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// The gradient of the weights; `params` are those of the forward pass.
poplar::Tensor calculateWeightDeltas(poplar::Graph &graph, const poplar::Tensor &zDeltas, const poplar::Tensor &activations,
                                     const ConvParams &params, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                     const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// weights += scale x gradient
void convolutionWeightUpdate(poplar::Graph &graph, const poplar::Tensor &zDeltas, const poplar::Tensor &weights,
                             const poplar::Tensor &activations, const ConvParams &params, float scale, poplar::program::Sequence &prog,
                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                             PlanningCache *cache = nullptr);
void convolutionWeightUpdate(poplar::Graph &graph, const poplar::Tensor &zDeltas, const poplar::Tensor &weights,
                             const poplar::Tensor &activations, const ConvParams &params, const poplar::Tensor &scale,
                             poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                             PlanningCache *cache = nullptr);
/// biases += scale x sums of zDeltas over samples and field
void convolutionBiasUpdate(poplar::Graph &graph, const poplar::Tensor &zDeltas, const poplar::Tensor &biases, float scale,
                           const poplar::OptionFlags &options, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
void convolutionBiasUpdate(poplar::Graph &graph, const poplar::Tensor &zDeltas, const poplar::Tensor &biases, const poplar::Tensor &scale,
                           const poplar::OptionFlags &options, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});

/// Writes how the product of the forward pass, or of the gradient of the weights, is divided into blocks, one line.
void reportPlanInfo(std::ostream &out, const poplar::Graph &graph, const ConvParams &params, const poplar::OptionFlags &options = {},
                    PlanningCache *cache = nullptr);
void reportWeightUpdatePlanInfo(std::ostream &out, const poplar::Graph &graph, const ConvParams &fwdParams,
                                const poplar::OptionFlags &fwdOptions = {}, PlanningCache *cache = nullptr);
/// Two operations for each product of an element of the input and one of the kernel; zeros that transformations add are not counted.
std::uint64_t getFwdFlops(const ConvParams &params);
std::uint64_t getBwdFlops(const ConvParams &params);
std::uint64_t getWuFlops(const ConvParams &params);
/// Cycles if all tiles multiplied in every cycle.
double getFwdPerfectCycleCount(const poplar::Graph &graph, const ConvParams &params);
double getBwdPerfectCycleCount(const poplar::Graph &graph, const ConvParams &params);
double getWuPerfectCycleCount(const poplar::Graph &graph, const ConvParams &params);

using ConvPlanParams = std::tuple<const poplar::Target *, const ConvParams, const poplar::OptionFlags *>;
inline void preplanConvolutions(const std::set<ConvPlanParams> &, PlanningCache &) {}
inline void preplanConvolutions(poplar::Graph &, const std::set<ConvPlanParams> &, PlanningCache &) {}
/// Throws invalid_option for a name that no convolution has.
void convolutionValidateOptions(const poplar::OptionFlags &options);

} // namespace poplin

#endif
