// Long short-term memory over a sequence: forward, backward through time, and the gradients of the weights.
#ifndef SNNC_POPNN_LSTM_HPP
#define SNNC_POPNN_LSTM_HPP

#include <cstdint>
#include <utility>
#include <vector>

#include <poplar/OptionFlags.hpp>
#include <poplin/MatMul.hpp>
#include <popnn/LstmDef.hpp>
#include <popnn/NonLinearityDef.hpp>
#include <popnn/Rnn.hpp>

namespace popnn {
namespace lstm {

/// Forget gate, input gate, candidate, output gate.
const std::vector<BasicLstmCellUnit> getDefaultBasicLstmCellOrder();

struct LstmParams {
  rnn::RnnParams rnn;
  /// Older names for the members of `rnn`.
  poplar::Type dataType;
  std::size_t batchSize, timeSteps;
  std::vector<std::size_t> layerSizes;
  /// Whether the output contains every step, or only the last.
  bool outputFullSequence = true;
  bool doInputWeightCalc = true;
  bool calcInputGradients = true;
  bool preserveFinalState = false;
  /// Order of the gates in weights and biases.
  std::vector<BasicLstmCellUnit> cellOrder = getDefaultBasicLstmCellOrder();
  NonLinearityType activation = NonLinearityType::TANH, recurrentActivation = NonLinearityType::SIGMOID;

  LstmParams(poplar::Type type, std::size_t batch, std::size_t steps, std::vector<std::size_t> sizes,
             NonLinearityType cell = NonLinearityType::TANH, NonLinearityType gates = NonLinearityType::SIGMOID)
      : rnn(type, batch, steps, sizes), dataType(type), batchSize(batch), timeSteps(steps), layerSizes(sizes), activation(cell),
        recurrentActivation(gates) {}
  LstmParams(poplar::Type type, std::size_t batch, std::size_t maxSteps, const poplar::Tensor &steps, std::vector<std::size_t> sizes,
             NonLinearityType cell = NonLinearityType::TANH, NonLinearityType gates = NonLinearityType::SIGMOID)
      : rnn(type, batch, maxSteps, steps, sizes), dataType(type), batchSize(batch), timeSteps(maxSteps), layerSizes(sizes),
        activation(cell), recurrentActivation(gates) {}
};

/// Both [batch, output size].
struct LstmState {
  poplar::Tensor output, cellState;
  /// [2, batch, output size]
  poplar::Tensor getAsTensor() const { return poplar::concat(output.expand({0}), cellState.expand({0})); }
};

/// [4, input size, output size], [4, output size, output size] and [4, output size].
struct LstmWeights {
  poplar::Tensor inputWeights, outputWeights, biases;
};

/// The products to plan in advance: none.
inline std::vector<std::pair<poplin::MatMulParams, poplar::OptionFlags>> getMatMulPrePlanParameters(LstmParams, poplar::OptionFlags) {
  return {};
}
std::uint64_t getBasicLstmCellFwdFlops(const LstmParams &params);
std::uint64_t getBasicLstmCellBwdFlops(const LstmParams &params);
std::uint64_t getBasicLstmCellWuFlops(const LstmParams &params);

/// [steps, batch, input size]
poplar::Tensor createInput(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &context = {},
                           const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
poplar::Tensor createInitialOutput(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &context = {},
                                   const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
poplar::Tensor createInitialCellState(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &context = {},
                                      const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
LstmState createInitialState(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &context = {},
                             const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
void zeroInitialState(poplar::Graph &graph, const LstmState &initialState, poplar::program::Sequence &prog,
                      const poplar::DebugContext &context = {});
std::pair<poplar::Tensor, poplar::Tensor> createWeightsKernel(poplar::Graph &graph, const LstmParams &params,
                                                              const poplar::DebugContext &context = {},
                                                              const poplar::OptionFlags &options = {},
                                                              poplin::PlanningCache *cache = nullptr);
poplar::Tensor createWeightsBiases(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &context = {},
                                   const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
LstmWeights createWeights(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &context = {},
                          const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);

/// The output ([steps, batch, output size], or [batch, output size] of the last step) and the last cell state. `intermediates` becomes
/// the data that the backward pass needs; null for inference.
std::pair<poplar::Tensor, poplar::Tensor> lstmFwd(poplar::Graph &graph, const LstmParams &params, const LstmState &stateInit,
                                                  const poplar::Tensor &in, const LstmWeights &weights, poplar::Tensor *intermediates,
                                                  poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                                  const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
/// The gradient of the initial state. `lastStepStateGrad`, `inputGrad` and `bwdIntermediates` may be null.
LstmState lstmBwd(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog, const LstmState &fwdStateInit,
                  const poplar::Tensor &fwdIntermediates, const LstmWeights &weights, const poplar::Tensor &input,
                  const poplar::Tensor &output, const poplar::Tensor &outputGrad, const LstmState *lastStepStateGrad,
                  poplar::Tensor *inputGrad, poplar::Tensor *bwdIntermediates, const poplar::DebugContext &context = {},
                  const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
/// As above, if only the last cell state has a gradient.
LstmState lstmBwd(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog, const LstmState &fwdStateInit,
                  const poplar::Tensor &fwdIntermediates, const LstmWeights &weights, const poplar::Tensor &input,
                  const poplar::Tensor &output, const poplar::Tensor &outputGrad, const poplar::Tensor *lastCellStateGrad,
                  poplar::Tensor *inputGrad, poplar::Tensor *bwdIntermediates, const poplar::DebugContext &context = {},
                  const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
/// The gradients of the weights, from data that both passes kept.
LstmWeights lstmWU(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog, const LstmState &fwdStateInit,
                   const poplar::Tensor &fwdIntermediates, const poplar::Tensor &bwdIntermediates, const LstmWeights &weights,
                   const poplar::Tensor &input, const poplar::Tensor &output, const poplar::DebugContext &context = {},
                   const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
LstmState lstmBwdWithWU(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog, const LstmState &fwdStateInit,
                        const poplar::Tensor &fwdIntermediates, const LstmWeights &weights, const poplar::Tensor &input,
                        const poplar::Tensor &output, const poplar::Tensor &outputGrad, const LstmState *lastStepStateGrad,
                        poplar::Tensor *inputGrad, LstmWeights &weightsGrad, const poplar::DebugContext &context = {},
                        const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
LstmState lstmBwdWithWU(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog, const LstmState &fwdStateInit,
                        const poplar::Tensor &fwdIntermediates, const LstmWeights &weights, const poplar::Tensor &input,
                        const poplar::Tensor &output, const poplar::Tensor &outputGrad, const poplar::Tensor *lastCellStateGrad,
                        poplar::Tensor *inputGrad, LstmWeights &weightsGrad, const poplar::DebugContext &context = {},
                        const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);

} // namespace lstm
} // namespace popnn

#endif
