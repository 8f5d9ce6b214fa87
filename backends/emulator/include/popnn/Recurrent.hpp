// A recurrent layer without gates: y[t] = f(Wff x[t] + Wfb y[t - 1] + b).
#ifndef SNNC_POPNN_RECURRENT_HPP
#define SNNC_POPNN_RECURRENT_HPP

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplin/MatMul.hpp>
#include <popnn/NonLinearity.hpp>

namespace popnn {
namespace rnn {

/// The products of the layer.
std::vector<std::pair<poplin::MatMulParams, poplar::OptionFlags>>
getMatMulPrePlanParameters(std::size_t numSteps, std::size_t batchSize, std::size_t inputSize, std::size_t outputSize, const poplar::Type &dType,
                           const poplar::Type &partialsType = poplar::FLOAT, bool inferenceOnly = false, bool hasFeedforwardWeights = true);
/// Two for each product, and one for each bias that is added.
std::uint64_t getFwdFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize, unsigned outputSize, bool weightInput = true);
std::uint64_t getBwdFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize, unsigned outputSize, bool calcInputGrad = true);
std::uint64_t getWuFlops(unsigned sequenceSize, unsigned batchSize, unsigned inputSize, unsigned outputSize);

/// [steps, batch, input size]
poplar::Tensor createInput(poplar::Graph &graph, unsigned numSteps, unsigned batchSize, unsigned inputSize, unsigned outputSize,
                           const poplar::Type &dType, const poplar::Type &partialsType = poplar::FLOAT, bool inferenceOnly = false,
                           const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);
/// [batch, output size]; zero if `initState`.
poplar::Tensor createFwdState(poplar::Graph &graph, const poplar::Type &dType, unsigned batchSize, unsigned outputSize,
                              poplar::program::Sequence &prog, bool initState, bool inferenceOnly, const poplar::DebugContext &context = {},
                              poplin::PlanningCache *cache = nullptr);
/// The state is the last output.
inline poplar::Tensor getOutputFromFwdState(const poplar::Tensor &fwdState) { return fwdState; }
/// Wff, [output size, input size].
poplar::Tensor createWeightsInput(poplar::Graph &graph, unsigned sequenceSize, unsigned batchSize, unsigned inputSize, unsigned outputSize,
                                  const poplar::Type &dType, const poplar::Type &partialsType = poplar::FLOAT, bool inferenceOnly = false,
                                  const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);
/// Wfb, [output size, output size].
poplar::Tensor createWeightsFeedback(poplar::Graph &graph, unsigned batchSize, unsigned outputSize, const poplar::Type &dType,
                                     const poplar::Type &partialsType = poplar::FLOAT, bool inferenceOnly = false,
                                     const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);

/// Wff x of all steps: [steps, batch, output size].
poplar::Tensor forwardWeightInput(poplar::Graph &graph, const poplar::Tensor &actIn, const poplar::Tensor &weights,
                                  poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
                                  bool inferenceOnly = false, const poplar::DebugContext &context = {},
                                  poplin::PlanningCache *cache = nullptr);
/// The outputs of all steps from `feedFwdIn`, which forwardWeightInput returns.
poplar::Tensor forwardIterate(poplar::Graph &graph, const poplar::Tensor &feedFwdIn, const poplar::Tensor &initState,
                              const poplar::Tensor &feedbackWeights, const poplar::Tensor &biases, poplar::program::Sequence &prog,
                              NonLinearityType nonLinearityType, const poplar::Type &partialsType = poplar::FLOAT, bool inferenceOnly = false,
                              const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);
/// Both at once; with `weightedIn`, the input was multiplied before.
poplar::Tensor rnnFwdSequence(poplar::Graph &graph, poplar::program::Sequence &prog, const poplar::Tensor &fwdStateInit,
                              const poplar::Tensor *weightedIn, const poplar::Tensor &biases, const poplar::Tensor &feedFwdWeights,
                              const poplar::Tensor &feedbackWeights, const poplar::Tensor &prevLayerActs,
                              const NonLinearityType &nonLinearityType, const poplar::Type &partialsType, bool inferenceOnly,
                              const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);

/// Zeros, [batch, output size]: the gradient from the steps after the last.
poplar::Tensor createBwdState(poplar::Graph &graph, const poplar::Type &dType, unsigned batchSize, unsigned outputSize,
                              poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                              poplin::PlanningCache *cache = nullptr);
/// The gradients of one step's input and of its sum before the non-linearity, which is the state of the step before.
std::pair<poplar::Tensor, poplar::Tensor>
backwardGradientStep(poplar::Graph &graph, const poplar::Tensor &nextLayerGrad, const poplar::Tensor &bwdState, const poplar::Tensor &actOut,
                     const poplar::Tensor &weightsInput, const poplar::Tensor &weightsFeedback, poplar::program::Sequence &prog,
                     NonLinearityType nonLinearityType, const poplar::Type &partialsType = poplar::FLOAT,
                     const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);
/// As above, but only the gradient of the sum.
poplar::Tensor backwardGradientStep(poplar::Graph &graph, const poplar::Tensor &nextLayerGrad, const poplar::Tensor &bwdState,
                                    const poplar::Tensor &actOut, const poplar::Tensor &weightsFeedback, poplar::program::Sequence &prog,
                                    NonLinearityType nonLinearityType, const poplar::Type &partialsType = poplar::FLOAT,
                                    const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);
/// Adds one step's gradients of weights and biases, which have the shapes of these.
void paramDeltaUpdate(poplar::Graph &graph, const poplar::Tensor &bwdState, const poplar::Tensor &actIn, const poplar::Tensor &prevOut,
                      poplar::Tensor &weightsInputDeltasAcc, poplar::Tensor &weightsFeedbackDeltasAcc, poplar::Tensor &biasDeltasAcc,
                      poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
                      const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);
/// The gradients of the input, Wff, Wfb and the biases from those of all outputs. The first is invalid with `ignoreInputGradientCalc`,
/// the others without `doWU`.
std::tuple<poplar::Tensor, poplar::Tensor, poplar::Tensor, poplar::Tensor>
rnnBwdSequence(poplar::Graph &graph, bool doWU, bool ignoreInputGradientCalc, poplar::program::Sequence &prog,
               const poplar::Tensor &fwdStateInit, const poplar::Tensor &fwdState, const poplar::Tensor &biases,
               const poplar::Tensor &feedFwdWeights, const poplar::Tensor &feedbackWeights, const poplar::Tensor &outGradient,
               const poplar::Tensor &actIn, const NonLinearityType &nonLinearityType, const poplar::Type &partialsType,
               const poplar::DebugContext &context = {}, poplin::PlanningCache *cache = nullptr);

} // namespace rnn
} // namespace popnn

#endif
