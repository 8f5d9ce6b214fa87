// popnn/Lstm.hpp: a loop over steps; what does not depend on the state is one product over all steps.
#include <popnn/Lstm.hpp>

#include <algorithm>
#include <array>

#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "recurrent.hpp"

namespace popnn {
namespace lstm {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

constexpr std::size_t units = BASIC_LSTM_CELL_NUM_UNITS;

/// A layer and the positions of its gates.
struct Layer : Recurrence {
  std::array<std::size_t, units> place{};

  Layer(Graph &graph_, const LstmParams &params, const OptionFlags &options, const DebugContext &context)
      : Recurrence(graph_, params.rnn, params.activation, params.recurrentActivation, options, contextName(context, "lstm")) {
    std::array<unsigned, units> seen{};
    for (std::size_t i = 0; i < params.cellOrder.size(); ++i)
      if (unsigned(params.cellOrder[i]) < units) {
        place[params.cellOrder[i]] = i;
        ++seen[params.cellOrder[i]];
      }
    if (params.cellOrder.size() != units || seen != std::array<unsigned, units>{1, 1, 1, 1})
      throw poputil::poplibs_error(name + ": cellOrder must name each of the four gates once");
    if (!params.doInputWeightCalc)
      throw poputil::poplibs_error(name + ": without doInputWeightCalc results would not be those of an LSTM");
  }
  NonLinearityType activationOf(BasicLstmCellUnit unit) const { return unit == BASIC_LSTM_CELL_CANDIDATE ? cell : gates; }
  /// [batch, out] from [batch, units x out].
  Tensor unit(const Tensor &all, BasicLstmCellUnit u) const { return all.slice(place[u] * out, (place[u] + 1) * out, 1); }
  /// Tensors by unit, side by side as in the weights.
  Tensor inOrder(const std::array<Tensor, units> &of) const {
    std::vector<Tensor> ordered(units);
    for (std::size_t u = 0; u < units; ++u)
      ordered[place[u]] = of[u];
    return poplar::concat(ordered, 1);
  }
  void check(const LstmWeights &weights) const {
    requireShape(weights.inputWeights, {units, in, out}, "the input's weights");
    requireShape(weights.outputWeights, {units, out, out}, "the output's weights");
    requireShape(weights.biases, {units, out}, "the biases");
  }
};

/// Values of each step that the forward pass keeps.
enum Kept { FORGET, INPUT, CANDIDATE, OUTPUT, ACTIVATED, CELL_BEFORE, HIDDEN, KEPT };

/// The gradient of a step's gates, [batch, units x out]; `dCell` becomes that of the previous cell state.
Tensor gateGradients(const Layer &layer, const Tensor &kept, const Tensor &dHidden, const Tensor &dCell, Sequence &prog) {
  const auto of = [&](const Expr &e, std::vector<Tensor> tensors) { return layer.map(e, tensors, prog); };
  const Tensor activatedGradient = layer.gradient(layer.cell, kept[ACTIVATED], of(Mul(_1, _2), {dHidden, kept[OUTPUT]}), prog);
  const Tensor d = of(Add(_1, _2), {dCell, activatedGradient});
  const auto gate = [&](BasicLstmCellUnit unit, Kept value, const Tensor &a, const Tensor &b) {
    return layer.gradient(layer.activationOf(unit), kept[value], of(Mul(_1, _2), {a, b}), prog);
  };
  std::array<Tensor, units> gates;
  gates[BASIC_LSTM_CELL_OUTPUT_GATE] = gate(BASIC_LSTM_CELL_OUTPUT_GATE, OUTPUT, dHidden, kept[ACTIVATED]);
  gates[BASIC_LSTM_CELL_FORGET_GATE] = gate(BASIC_LSTM_CELL_FORGET_GATE, FORGET, d, kept[CELL_BEFORE]);
  gates[BASIC_LSTM_CELL_INPUT_GATE] = gate(BASIC_LSTM_CELL_INPUT_GATE, INPUT, d, kept[CANDIDATE]);
  gates[BASIC_LSTM_CELL_CANDIDATE] = gate(BASIC_LSTM_CELL_CANDIDATE, CANDIDATE, d, kept[INPUT]);
  prog.add(Copy(of(Mul(_1, _2), {d, kept[FORGET]}), dCell));
  return layer.inOrder(gates);
}

LstmState initialGradient(const Layer &layer, const LstmParams &params, const Tensor &outputGrad, const Tensor *lastOutput,
                          const Tensor *lastCell, Sequence &prog) {
  const LstmState d{layer.state("outputGradient"), layer.state("cellGradient")};
  const auto begin = [&](const Tensor &to, const Tensor *from) {
    if (from)
      prog.add(Copy(*from, to));
    else
      popops::zero(layer.graph, to, prog, layer.name);
  };
  begin(d.output, lastOutput);
  begin(d.cellState, lastCell);
  if (!params.outputFullSequence)
    popops::mapInPlace(layer.graph, Add(_1, _2), {d.output, outputGrad}, prog, layer.name);
  return d;
}

LstmState backward(const Layer &layer, const LstmParams &params, Sequence &prog, const Tensor &intermediates, const LstmWeights &weights,
                   const Tensor &outputGrad, const Tensor *lastOutput, const Tensor *lastCell, Tensor *inputGrad,
                   Tensor *bwdIntermediates) {
  layer.check(weights);
  layer.requireShape(intermediates, {layer.steps, KEPT, layer.batch, layer.out}, "what the forward pass kept");
  if (params.outputFullSequence)
    layer.requireShape(outputGrad, {layer.steps, layer.batch, layer.out}, "the output's gradient");
  else
    layer.requireShape(outputGrad, {layer.batch, layer.out}, "the output's gradient");
  const LstmState d = initialGradient(layer, params, outputGrad, lastOutput, lastCell, prog);
  const Tensor gates = layer.sequence({layer.steps, layer.batch, units * layer.out}, "gateGradients");
  const Tensor back = sideBySide(weights.outputWeights).transpose();
  layer.overSteps(true, prog, [&](const Tensor &index, Sequence &round) {
    const Tensor kept = layer.stepOf(intermediates, index, round);
    const Tensor dHidden =
        params.outputFullSequence ? layer.map(Add(_1, _2), {d.output, layer.stepOf(outputGrad, index, round)}, round) : d.output;
    const Tensor ofStep = gateGradients(layer, kept, dHidden, d.cellState, round);
    layer.setStep(gates, ofStep, index, round);
    round.add(Copy(layer.product(ofStep, back, round), d.output));
  });
  if (inputGrad && params.calcInputGradients)
    *inputGrad = layer.product(gates.flatten(0, 2), sideBySide(weights.inputWeights).transpose(), prog)
                     .reshape({layer.steps, layer.batch, layer.in});
  if (bwdIntermediates)
    *bwdIntermediates = gates;
  return d;
}

LstmWeights weightGradients(const Layer &layer, Sequence &prog, const LstmState &init, const Tensor &intermediates, const Tensor &gates,
                            const Tensor &input) {
  const Tensor hidden = intermediates.slice(HIDDEN, HIDDEN + 1, 1).squeeze({1});
  const Tensor before = poplar::concat(init.output.expand({0}), hidden.slice(0, layer.steps - 1));
  return {oneByOne(layer.productOverSteps(input, gates, prog), units), oneByOne(layer.productOverSteps(before, gates, prog), units),
          layer.sumOverSteps(gates, prog).reshape({units, layer.out})};
}

Tensor made(Graph &graph, const LstmParams &params, const std::vector<std::size_t> &shape, const DebugContext &context, const char *what) {
  const Tensor t = graph.addVariable(params.rnn.dataType, shape, contextName(context, "lstm") + "/" + what);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

} // namespace

const std::vector<BasicLstmCellUnit> getDefaultBasicLstmCellOrder() {
  return {BASIC_LSTM_CELL_FORGET_GATE, BASIC_LSTM_CELL_INPUT_GATE, BASIC_LSTM_CELL_CANDIDATE, BASIC_LSTM_CELL_OUTPUT_GATE};
}

std::uint64_t getBasicLstmCellFwdFlops(const LstmParams &p) {
  const std::uint64_t b = p.rnn.batchSize, i = p.rnn.layerSizes.at(0), o = p.rnn.layerSizes.at(1), t = p.rnn.maxTimeSteps;
  return t * (units * b * o * (2 * i + 2 * o) + units * b * o + 9 * b * o);
}
std::uint64_t getBasicLstmCellBwdFlops(const LstmParams &p) {
  const std::uint64_t b = p.rnn.batchSize, i = p.rnn.layerSizes.at(0), o = p.rnn.layerSizes.at(1), t = p.rnn.maxTimeSteps;
  return t * (units * b * o * 2 * o + (p.calcInputGradients ? units * b * o * 2 * i : 0) + 12 * b * o);
}
std::uint64_t getBasicLstmCellWuFlops(const LstmParams &p) {
  const std::uint64_t b = p.rnn.batchSize, i = p.rnn.layerSizes.at(0), o = p.rnn.layerSizes.at(1), t = p.rnn.maxTimeSteps;
  return t * (units * b * o * 2 * (i + o) + units * b * o);
}

Tensor createInput(Graph &graph, const LstmParams &params, const DebugContext &context, const OptionFlags &, poplin::PlanningCache *) {
  return rnn::createInputTensor(graph, params.rnn, 1, contextName(context, "lstm") + "/input");
}
Tensor createInitialOutput(Graph &graph, const LstmParams &params, const DebugContext &context, const OptionFlags &,
                           poplin::PlanningCache *) {
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, contextName(context, "lstm") + "/initialOutput")[0];
}
Tensor createInitialCellState(Graph &graph, const LstmParams &params, const DebugContext &context, const OptionFlags &,
                              poplin::PlanningCache *) {
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, contextName(context, "lstm") + "/initialCellState")[0];
}
LstmState createInitialState(Graph &graph, const LstmParams &params, const DebugContext &context, const OptionFlags &options,
                             poplin::PlanningCache *cache) {
  return {createInitialOutput(graph, params, context, options, cache), createInitialCellState(graph, params, context, options, cache)};
}
void zeroInitialState(Graph &graph, const LstmState &state, Sequence &prog, const DebugContext &context) {
  addLibrary(graph, "popops");
  popops::zero(graph, state.getAsTensor(), prog, context);
}
std::pair<Tensor, Tensor> createWeightsKernel(Graph &graph, const LstmParams &params, const DebugContext &context, const OptionFlags &,
                                              poplin::PlanningCache *) {
  const std::size_t in = params.rnn.layerSizes.at(0), out = params.rnn.layerSizes.at(1);
  return {made(graph, params, {units, in, out}, context, "inputWeights"), made(graph, params, {units, out, out}, context, "outputWeights")};
}
Tensor createWeightsBiases(Graph &graph, const LstmParams &params, const DebugContext &context, const OptionFlags &,
                           poplin::PlanningCache *) {
  return made(graph, params, {units, params.rnn.layerSizes.at(1)}, context, "biases");
}
LstmWeights createWeights(Graph &graph, const LstmParams &params, const DebugContext &context, const OptionFlags &options,
                          poplin::PlanningCache *cache) {
  const auto kernel = createWeightsKernel(graph, params, context, options, cache);
  return {kernel.first, kernel.second, createWeightsBiases(graph, params, context, options, cache)};
}

std::pair<Tensor, Tensor> lstmFwd(Graph &graph, const LstmParams &params, const LstmState &init, const Tensor &in,
                                  const LstmWeights &weights, Tensor *intermediates, Sequence &prog, const DebugContext &context,
                                  const OptionFlags &options, poplin::PlanningCache *) {
  const Layer layer(graph, params, options, context);
  layer.check(weights);
  layer.requireShape(in, {layer.steps, layer.batch, layer.in}, "the input");
  layer.requireShape(init.output, {layer.batch, layer.out}, "the initial output");
  layer.requireShape(init.cellState, {layer.batch, layer.out}, "the initial cell state");
  const Tensor weighted = layer.map(
      Add(_1, _2), {layer.product(in.flatten(0, 2), sideBySide(weights.inputWeights), prog), weights.biases.flatten().expand({0})}, prog);
  const Tensor ofInput = weighted.reshape({layer.steps, layer.batch, units * layer.out});
  const Tensor hidden = duplicate(graph, init.output, prog, layer.name + "/output"),
               cell = duplicate(graph, init.cellState, prog, layer.name + "/cell");
  const Tensor recurrent = sideBySide(weights.outputWeights);
  const Tensor sequence = params.outputFullSequence ? layer.sequence({layer.steps, layer.batch, layer.out}, "outputs") : Tensor();
  if (intermediates)
    *intermediates = layer.sequence({layer.steps, KEPT, layer.batch, layer.out}, "kept");
  layer.overSteps(false, prog, [&](const Tensor &index, Sequence &round) {
    const Tensor sums = layer.map(Add(_1, _2), {layer.stepOf(ofInput, index, round), layer.product(hidden, recurrent, round)}, round);
    const auto gate = [&](BasicLstmCellUnit unit) { return layer.activated(layer.activationOf(unit), layer.unit(sums, unit), round); };
    const Tensor f = gate(BASIC_LSTM_CELL_FORGET_GATE), i = gate(BASIC_LSTM_CELL_INPUT_GATE), c = gate(BASIC_LSTM_CELL_CANDIDATE),
                 o = gate(BASIC_LSTM_CELL_OUTPUT_GATE);
    const Tensor next = layer.map(Add(Mul(_1, _2), Mul(_3, _4)), {f, cell, i, c}, round),
                 activated = layer.activated(layer.cell, next, round);
    round.add(Copy(layer.map(Mul(_1, _2), {o, activated}, round), hidden));
    if (intermediates)
      layer.setStep(*intermediates, stacked({f, i, c, o, activated, cell, hidden}), index, round);
    round.add(Copy(next, cell));
    if (params.outputFullSequence)
      layer.setStep(sequence, hidden, index, round);
  });
  return {params.outputFullSequence ? sequence : hidden, cell};
}

LstmState lstmBwd(Graph &graph, const LstmParams &params, Sequence &prog, const LstmState &, const Tensor &intermediates,
                  const LstmWeights &weights, const Tensor &, const Tensor &, const Tensor &outputGrad, const LstmState *last,
                  Tensor *inputGrad, Tensor *bwdIntermediates, const DebugContext &context, const OptionFlags &options,
                  poplin::PlanningCache *) {
  return backward(Layer(graph, params, options, context), params, prog, intermediates, weights, outputGrad, last ? &last->output : nullptr,
                  last ? &last->cellState : nullptr, inputGrad, bwdIntermediates);
}

LstmState lstmBwd(Graph &graph, const LstmParams &params, Sequence &prog, const LstmState &, const Tensor &intermediates,
                  const LstmWeights &weights, const Tensor &, const Tensor &, const Tensor &outputGrad, const Tensor *lastCell,
                  Tensor *inputGrad, Tensor *bwdIntermediates, const DebugContext &context, const OptionFlags &options,
                  poplin::PlanningCache *) {
  return backward(Layer(graph, params, options, context), params, prog, intermediates, weights, outputGrad, nullptr, lastCell, inputGrad,
                  bwdIntermediates);
}

LstmWeights lstmWU(Graph &graph, const LstmParams &params, Sequence &prog, const LstmState &init, const Tensor &intermediates,
                   const Tensor &bwdIntermediates, const LstmWeights &, const Tensor &input, const Tensor &, const DebugContext &context,
                   const OptionFlags &options, poplin::PlanningCache *) {
  const Layer layer(graph, params, options, context);
  layer.requireShape(input, {layer.steps, layer.batch, layer.in}, "the input");
  layer.requireShape(bwdIntermediates, {layer.steps, layer.batch, units * layer.out}, "what the backward pass kept");
  return weightGradients(layer, prog, init, intermediates, bwdIntermediates, input);
}

LstmState lstmBwdWithWU(Graph &graph, const LstmParams &params, Sequence &prog, const LstmState &init, const Tensor &intermediates,
                        const LstmWeights &weights, const Tensor &input, const Tensor &output, const Tensor &outputGrad,
                        const LstmState *last, Tensor *inputGrad, LstmWeights &weightsGrad, const DebugContext &context,
                        const OptionFlags &options, poplin::PlanningCache *cache) {
  Tensor kept;
  const LstmState d = lstmBwd(graph, params, prog, init, intermediates, weights, input, output, outputGrad, last, inputGrad, &kept, context,
                              options, cache);
  weightsGrad = lstmWU(graph, params, prog, init, intermediates, kept, weights, input, output, context, options, cache);
  return d;
}

LstmState lstmBwdWithWU(Graph &graph, const LstmParams &params, Sequence &prog, const LstmState &init, const Tensor &intermediates,
                        const LstmWeights &weights, const Tensor &input, const Tensor &output, const Tensor &outputGrad,
                        const Tensor *lastCell, Tensor *inputGrad, LstmWeights &weightsGrad, const DebugContext &context,
                        const OptionFlags &options, poplin::PlanningCache *cache) {
  Tensor kept;
  const LstmState d = lstmBwd(graph, params, prog, init, intermediates, weights, input, output, outputGrad, lastCell, inputGrad, &kept,
                              context, options, cache);
  weightsGrad = lstmWU(graph, params, prog, init, intermediates, kept, weights, input, output, context, options, cache);
  return d;
}

} // namespace lstm
} // namespace popnn
