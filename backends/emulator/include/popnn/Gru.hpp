// Gated recurrent units over a sequence: forward, backward through time, and the gradients of the weights.
#ifndef SNNC_POPNN_GRU_HPP
#define SNNC_POPNN_GRU_HPP

#include <cstdint>
#include <utility>
#include <vector>

#include <poplar/OptionFlags.hpp>
#include <poplin/MatMul.hpp>
#include <popnn/GruDef.hpp>
#include <popnn/NonLinearityDef.hpp>
#include <popnn/Rnn.hpp>

namespace popnn {
namespace gru {

/// Reset gate, update gate, candidate.
const std::vector<BasicGruCellUnit> getDefaultBasicGruCellOrder();

struct GruParams {
  rnn::RnnParams rnn;
  /// Older names for the members of `rnn`.
  poplar::Type dataType;
  std::size_t batchSize, timeSteps;
  std::vector<std::size_t> layerSizes;
  /// Whether the output contains every step, or only the last.
  bool outputFullSequence = true;
  bool calcInputGradients = true;
  /// Order of the gates in weights and biases.
  std::vector<BasicGruCellUnit> cellOrder = getDefaultBasicGruCellOrder();
  /// Whether the reset gate is applied after or before the product with the candidate's weights.
  bool resetAfter = false;
  NonLinearityType activation = NonLinearityType::TANH, recurrentActivation = NonLinearityType::SIGMOID;

  GruParams(poplar::Type type, std::size_t batch, std::size_t steps, std::vector<std::size_t> sizes,
            NonLinearityType cell = NonLinearityType::TANH, NonLinearityType gates = NonLinearityType::SIGMOID)
      : rnn(type, batch, steps, sizes), dataType(type), batchSize(batch), timeSteps(steps), layerSizes(sizes), activation(cell),
        recurrentActivation(gates) {}
  GruParams(poplar::Type type, std::size_t batch, std::size_t maxSteps, const poplar::Tensor &steps, std::vector<std::size_t> sizes,
            NonLinearityType cell = NonLinearityType::TANH, NonLinearityType gates = NonLinearityType::SIGMOID)
      : rnn(type, batch, maxSteps, steps, sizes), dataType(type), batchSize(batch), timeSteps(maxSteps), layerSizes(sizes),
        activation(cell), recurrentActivation(gates) {}
};

/// [3, input size, output size], [3, output size, output size] and [3, output size]; with resetAfter biases are [3, 2, output size]: of
/// the input and of the recurrence.
struct GruWeights {
  poplar::Tensor inputWeights, outputWeights, biases;
};

std::uint64_t getBasicGruCellFwdFlops(const GruParams &params);
std::uint64_t getBasicGruCellBwdFlops(const GruParams &params);
std::uint64_t getBasicGruCellWuFlops(const GruParams &params);

/// [steps, batch, input size]
poplar::Tensor createInput(poplar::Graph &graph, const GruParams &params, const poplar::DebugContext &context = {},
                           const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
/// [batch, output size]
poplar::Tensor createInitialState(poplar::Graph &graph, const GruParams &params, const poplar::DebugContext &context = {},
                                  const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
std::pair<poplar::Tensor, poplar::Tensor> createWeightsKernel(poplar::Graph &graph, const GruParams &params,
                                                              const poplar::DebugContext &context = {},
                                                              const poplar::OptionFlags &options = {},
                                                              poplin::PlanningCache *cache = nullptr);
poplar::Tensor createWeightsBiases(poplar::Graph &graph, const GruParams &params, const poplar::DebugContext &context = {},
                                   const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
GruWeights createWeights(poplar::Graph &graph, const GruParams &params, const poplar::DebugContext &context = {},
                         const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);

/// [batch, steps]
poplar::Tensor createAttention(poplar::Graph &graph, const GruParams &params, const poplar::DebugContext &context = {},
                               const poplar::OptionFlags &options = {});

/// The output: [steps, batch, output size], or [batch, output size] of the last step. `intermediates` becomes the data for the backward
/// pass; it is null for inference.
poplar::Tensor gruFwd(poplar::Graph &graph, const GruParams &params, const poplar::Tensor &stateInit, const poplar::Tensor &in,
                      const GruWeights &weights, poplar::Tensor *intermediates, poplar::program::Sequence &prog,
                      const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                      poplin::PlanningCache *cache = nullptr);
/// The gradient of the initial state. `inputGrad` and `bwdIntermediates` may be null.
poplar::Tensor gruBwd(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog, const poplar::Tensor &fwdOutputInit,
                      const poplar::Tensor &fwdIntermediates, const GruWeights &weights, const poplar::Tensor &input,
                      const poplar::Tensor &output, const poplar::Tensor &outputGrad, poplar::Tensor *inputGrad,
                      poplar::Tensor *bwdIntermediates, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                      poplin::PlanningCache *cache = nullptr);
/// The gradients of the weights, from data that both passes kept.
GruWeights gruWU(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog, const poplar::Tensor &fwdOutputInit,
                 const poplar::Tensor &fwdIntermediates, const poplar::Tensor &bwdIntermediates, const GruWeights &weights,
                 const poplar::Tensor &input, const poplar::Tensor &output, const poplar::DebugContext &context = {},
                 const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
poplar::Tensor gruBwdWithWU(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog,
                            const poplar::Tensor &fwdOutputInit, const poplar::Tensor &fwdIntermediates, const GruWeights &weights,
                            const poplar::Tensor &input, const poplar::Tensor &output, const poplar::Tensor &outputGrad,
                            poplar::Tensor *inputGrad, GruWeights &weightsGrad, const poplar::DebugContext &context = {},
                            const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);

/// The layer with attention: the update gate of step t and sample b is multiplied by 1 - attentions[b][t]; attentions are [batch, steps].
/// Source: G. Zhou et al., Deep Interest Evolution Network, AAAI 2019. Functions of older versions with `realTimeSteps` are not declared.
poplar::Tensor auGruFwd(poplar::Graph &graph, const GruParams &params, const poplar::Tensor &stateInit, const poplar::Tensor &in,
                        const GruWeights &weights, poplar::Tensor *intermediates, const poplar::Tensor &attentions,
                        poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                        poplin::PlanningCache *cache = nullptr);
/// `attentionsGrad`, [batch, steps], may be null too.
poplar::Tensor auGruBwd(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog, const poplar::Tensor &fwdOutputInit,
                        const poplar::Tensor &fwdIntermediates, const GruWeights &weights, const poplar::Tensor &input,
                        const poplar::Tensor &output, const poplar::Tensor &outputGrad, poplar::Tensor *inputGrad,
                        poplar::Tensor *bwdIntermediates, const poplar::Tensor &attentions, poplar::Tensor *attentionsGrad,
                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                        poplin::PlanningCache *cache = nullptr);
GruWeights auGruWU(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog, const poplar::Tensor &fwdOutputInit,
                   const poplar::Tensor &fwdIntermediates, const poplar::Tensor &bwdIntermediates, const GruWeights &weights,
                   const poplar::Tensor &input, const poplar::Tensor &output, const poplar::DebugContext &context = {},
                   const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);
poplar::Tensor auGruBwdWithWU(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog,
                              const poplar::Tensor &fwdOutputInit, const poplar::Tensor &fwdIntermediates, const GruWeights &weights,
                              const poplar::Tensor &input, const poplar::Tensor &output, const poplar::Tensor &outputGrad,
                              poplar::Tensor *inputGrad, GruWeights &weightsGrad, const poplar::Tensor &attentions,
                              poplar::Tensor *attentionsGrad, const poplar::DebugContext &context = {},
                              const poplar::OptionFlags &options = {}, poplin::PlanningCache *cache = nullptr);

} // namespace gru
} // namespace popnn

#endif
