// popnn/Gru.hpp: a loop over steps; everything independent of the state is one product over all steps.
#include <popnn/Gru.hpp>

#include <array>

#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "recurrent.hpp"

namespace popnn {
namespace gru {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

constexpr std::size_t units = BASIC_GRU_CELL_NUM_UNITS;
constexpr BasicGruCellUnit RESET = BASIC_GRU_CELL_RESET_GATE, UPDATE = BASIC_GRU_CELL_UPDATE_GATE, CANDIDATE = BASIC_GRU_CELL_CANDIDATE;

/// A layer and the positions of its gates.
struct Layer : Recurrence {
  std::array<std::size_t, units> place{};
  bool after;

  Layer(Graph &graph_, const GruParams &params, const OptionFlags &options, const DebugContext &context)
      : Recurrence(graph_, params.rnn, params.activation, params.recurrentActivation, options, contextName(context, "gru")),
        after(params.resetAfter) {
    std::array<unsigned, units> seen{};
    for (std::size_t i = 0; i < params.cellOrder.size(); ++i)
      if (unsigned(params.cellOrder[i]) < units) {
        place[params.cellOrder[i]] = i;
        ++seen[params.cellOrder[i]];
      }
    if (params.cellOrder.size() != units || seen != std::array<unsigned, units>{1, 1, 1})
      throw poputil::poplibs_error(name + ": cellOrder must name each of the three gates once");
  }
  std::vector<std::size_t> biasShape() const {
    return after ? std::vector<std::size_t>{units, 2, out} : std::vector<std::size_t>{units, out};
  }
  void check(const GruWeights &weights) const {
    requireShape(weights.inputWeights, {units, in, out}, "the input's weights");
    requireShape(weights.outputWeights, {units, out, out}, "the output's weights");
    requireShape(weights.biases, biasShape(), "the biases");
  }
  Tensor unit(const Tensor &all, BasicGruCellUnit u) const { return all.slice(place[u] * out, (place[u] + 1) * out, all.rank() - 1); }
  /// [out, 2 x out]: the recurrent weights of the reset and the update gate.
  Tensor gateWeights(const GruWeights &w) const { return poplar::concat(w.outputWeights[place[RESET]], w.outputWeights[place[UPDATE]], 1); }
  Tensor candidateWeights(const GruWeights &w) const { return w.outputWeights[place[CANDIDATE]]; }
  /// By unit, in the order of the weights.
  template <class F> Tensor ordered(F &&of, unsigned dim) const {
    std::vector<Tensor> found(units);
    for (std::size_t u = 0; u < units; ++u)
      found[place[u]] = of(BasicGruCellUnit(u));
    return poplar::concat(found, dim);
  }
};

/// Values of each step that the forward pass keeps: gates, previous state, the candidate's recurrent product (resetAfter), and, with
/// attention, the update gate before it is scaled.
enum Kept { R, U, C, BEFORE, RECURRENT, KEPT, GATE = KEPT };

struct Step {
  Tensor r, u, c, recurrent;
};

Step forwardStep(const Layer &layer, const GruWeights &weights, const Tensor &ofInput, const Tensor &hidden, Sequence &prog) {
  const auto sum = [&](const Tensor &a, const Tensor &b) { return layer.map(Add(_1, _2), {a, b}, prog); };
  const auto times = [&](const Tensor &a, const Tensor &b) { return layer.map(Mul(_1, _2), {a, b}, prog); };
  Tensor ofState = layer.product(hidden, layer.gateWeights(weights), prog);
  if (layer.after)
    ofState = sum(ofState, poplar::concat(weights.biases[layer.place[RESET]][1], weights.biases[layer.place[UPDATE]][1]).expand({0}));
  Step s;
  s.r = layer.activated(layer.gates, sum(layer.unit(ofInput, RESET), ofState.slice(0, layer.out, 1)), prog);
  s.u = layer.activated(layer.gates, sum(layer.unit(ofInput, UPDATE), ofState.slice(layer.out, 2 * layer.out, 1)), prog);
  if (layer.after)
    s.recurrent = sum(layer.product(hidden, layer.candidateWeights(weights), prog), weights.biases[layer.place[CANDIDATE]][1].expand({0}));
  else
    s.recurrent = layer.product(times(s.r, hidden), layer.candidateWeights(weights), prog);
  s.c = layer.activated(layer.cell, sum(layer.unit(ofInput, CANDIDATE), layer.after ? times(s.r, s.recurrent) : s.recurrent), prog);
  return s;
}

/// Attentions [batch, steps], or an invalid tensor; and, in a backward pass, their gradient [steps, batch, 1].
struct Attention {
  Tensor given, gradient;

  bool valid() const { return given.valid(); }
  std::size_t keptRows() const { return valid() ? KEPT + 1 : KEPT; }
  /// [steps, batch, 1]
  Tensor bySteps() const { return given.transpose().expand({2}); }
};

/// The gradient of the update gate's sum; `a` [batch, 1] is the step's attention, `da` gets its gradient; both are invalid without attention.
Tensor updateGradient(const Layer &layer, const Tensor &kept, const Tensor &dGate, const Tensor &a, Tensor &da, Sequence &prog) {
  if (!a.valid())
    return layer.gradient(layer.gates, kept[U], dGate, prog);
  const Tensor each = layer.map(Neg(Mul(_1, _2)), {dGate, kept[GATE]}, prog);
  da = popops::reduce(layer.graph, each, layer.type, {1}, popops::ReduceParams(popops::Operation::ADD), prog, layer.name).expand({1});
  return layer.gradient(layer.gates, kept[GATE], layer.map(Mul(_1, Sub(Const(1.f), _2)), {dGate, a}, prog), prog);
}

/// Gradients of a step: of the three sums, and of the candidate's recurrent part, [batch, 4 x out]. `d` becomes that of the previous state.
Tensor backwardStep(const Layer &layer, const GruWeights &weights, const Tensor &kept, const Tensor &dOut, const Tensor &d, const Tensor &a,
                    Tensor &da, Sequence &prog) {
  const auto of = [&](const Expr &e, std::vector<Tensor> tensors) { return layer.map(e, tensors, prog); };
  const Tensor dUpdate = updateGradient(layer, kept, of(Mul(_1, Sub(_2, _3)), {dOut, kept[BEFORE], kept[C]}), a, da, prog);
  const Tensor dCandidate = layer.gradient(layer.cell, kept[C], of(Mul(_1, Sub(Const(1.f), _2)), {dOut, kept[U]}), prog);
  const Tensor dRecurrent = layer.after ? of(Mul(_1, _2), {dCandidate, kept[R]}) : dCandidate;
  const Tensor throughCandidate = layer.product(dRecurrent, layer.candidateWeights(weights).transpose(), prog);
  const Tensor dReset = layer.gradient(
      layer.gates, kept[R],
      layer.after ? of(Mul(_1, _2), {dCandidate, kept[RECURRENT]}) : of(Mul(_1, _2), {throughCandidate, kept[BEFORE]}), prog);
  const Tensor throughGates = layer.product(poplar::concat(dReset, dUpdate, 1), layer.gateWeights(weights).transpose(), prog);
  const Tensor direct = layer.after ? of(Add(Mul(_1, _2), _3), {dOut, kept[U], throughCandidate})
                                    : of(Add(Mul(_1, _2), Mul(_3, _4)), {dOut, kept[U], throughCandidate, kept[R]});
  prog.add(Copy(of(Add(_1, _2), {direct, throughGates}), d));
  return poplar::concat({dReset, dUpdate, dCandidate, dRecurrent}, 1);
}

Tensor made(Graph &graph, const GruParams &params, const std::vector<std::size_t> &shape, const DebugContext &context, const char *what) {
  const Tensor t = graph.addVariable(params.rnn.dataType, shape, contextName(context, "gru") + "/" + what);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// Columns of one of the four gradients of every step.
Tensor column(const Layer &layer, const Tensor &gradients, std::size_t i) { return gradients.slice(i * layer.out, (i + 1) * layer.out, 2); }

} // namespace

const std::vector<BasicGruCellUnit> getDefaultBasicGruCellOrder() { return {RESET, UPDATE, CANDIDATE}; }

std::uint64_t getBasicGruCellFwdFlops(const GruParams &p) {
  const std::uint64_t b = p.rnn.batchSize, i = p.rnn.layerSizes.at(0), o = p.rnn.layerSizes.at(1), t = p.rnn.maxTimeSteps;
  return t * (units * b * o * (2 * i + 2 * o) + units * b * o + 8 * b * o);
}
std::uint64_t getBasicGruCellBwdFlops(const GruParams &p) {
  const std::uint64_t b = p.rnn.batchSize, i = p.rnn.layerSizes.at(0), o = p.rnn.layerSizes.at(1), t = p.rnn.maxTimeSteps;
  return t * (units * b * o * 2 * o + (p.calcInputGradients ? units * b * o * 2 * i : 0) + 12 * b * o);
}
std::uint64_t getBasicGruCellWuFlops(const GruParams &p) {
  const std::uint64_t b = p.rnn.batchSize, i = p.rnn.layerSizes.at(0), o = p.rnn.layerSizes.at(1), t = p.rnn.maxTimeSteps;
  return t * (units * b * o * 2 * (i + o) + units * b * o);
}

Tensor createInput(Graph &graph, const GruParams &params, const DebugContext &context, const OptionFlags &, poplin::PlanningCache *) {
  return rnn::createInputTensor(graph, params.rnn, 1, contextName(context, "gru") + "/input");
}
Tensor createInitialState(Graph &graph, const GruParams &params, const DebugContext &context, const OptionFlags &,
                          poplin::PlanningCache *) {
  return rnn::createInitialState(graph, params.rnn, true, 1, 1, contextName(context, "gru") + "/initialState")[0];
}
std::pair<Tensor, Tensor> createWeightsKernel(Graph &graph, const GruParams &params, const DebugContext &context, const OptionFlags &,
                                              poplin::PlanningCache *) {
  const std::size_t in = params.rnn.layerSizes.at(0), out = params.rnn.layerSizes.at(1);
  return {made(graph, params, {units, in, out}, context, "inputWeights"), made(graph, params, {units, out, out}, context, "outputWeights")};
}
Tensor createWeightsBiases(Graph &graph, const GruParams &params, const DebugContext &context, const OptionFlags &,
                           poplin::PlanningCache *) {
  const std::size_t out = params.rnn.layerSizes.at(1);
  return params.resetAfter ? made(graph, params, {units, 2, out}, context, "biases") : made(graph, params, {units, out}, context, "biases");
}
Tensor createAttention(Graph &graph, const GruParams &params, const DebugContext &context, const OptionFlags &) {
  const Tensor t = graph.addVariable(params.rnn.dataType, {params.rnn.batchSize, params.rnn.maxTimeSteps}, contextName(context, "attention"));
  poputil::mapTensorLinearly(graph, t);
  return t;
}

GruWeights createWeights(Graph &graph, const GruParams &params, const DebugContext &context, const OptionFlags &options,
                         poplin::PlanningCache *cache) {
  const auto kernel = createWeightsKernel(graph, params, context, options, cache);
  return {kernel.first, kernel.second, createWeightsBiases(graph, params, context, options, cache)};
}

namespace {

void checkAttention(const Layer &layer, const Tensor &given) {
  layer.requireShape(given, {layer.batch, layer.steps}, "the attentions");
}

Tensor forwards(const Layer &layer, const GruParams &params, const Tensor &init, const Tensor &in, const GruWeights &weights,
                Tensor *intermediates, const Attention &attention, Sequence &prog) {
  layer.check(weights);
  layer.requireShape(in, {layer.steps, layer.batch, layer.in}, "the input");
  layer.requireShape(init, {layer.batch, layer.out}, "the initial state");
  const Tensor biases = (layer.after ? weights.biases.slice(0, 1, 1) : weights.biases).flatten().expand({0});
  const Tensor ofInput = layer.map(Add(_1, _2), {layer.product(in.flatten(0, 2), sideBySide(weights.inputWeights), prog), biases}, prog)
                             .reshape({layer.steps, layer.batch, units * layer.out});
  const Tensor hidden = duplicate(layer.graph, init, prog, layer.name + "/output");
  const Tensor sequence = params.outputFullSequence ? layer.sequence({layer.steps, layer.batch, layer.out}, "outputs") : Tensor();
  if (intermediates)
    *intermediates = layer.sequence({layer.steps, attention.keptRows(), layer.batch, layer.out}, "kept");
  layer.overSteps(false, prog, [&](const Tensor &index, Sequence &round) {
    Step s = forwardStep(layer, weights, layer.stepOf(ofInput, index, round), hidden, round);
    const Tensor gate = s.u;
    if (attention.valid())
      s.u = layer.map(Mul(_1, Sub(Const(1.f), _2)), {gate, layer.stepOf(attention.bySteps(), index, round)}, round);
    std::vector<Tensor> kept{s.r, s.u, s.c, hidden, s.recurrent};
    if (attention.valid())
      kept.push_back(gate);
    if (intermediates)
      layer.setStep(*intermediates, stacked(kept), index, round);
    popops::mapInPlace(layer.graph, Add(Mul(_2, _1), Mul(Sub(Const(1.f), _2), _3)), {hidden, s.u, s.c}, round, layer.name);
    if (params.outputFullSequence)
      layer.setStep(sequence, hidden, index, round);
  });
  return params.outputFullSequence ? sequence : hidden;
}

Tensor backwards(const Layer &layer, const GruParams &params, Sequence &prog, const Tensor &intermediates, const GruWeights &weights,
                 const Tensor &outputGrad, Tensor *inputGrad, Tensor *bwdIntermediates, const Attention &attention) {
  layer.check(weights);
  layer.requireShape(intermediates, {layer.steps, attention.keptRows(), layer.batch, layer.out}, "what the forward pass kept");
  if (params.outputFullSequence)
    layer.requireShape(outputGrad, {layer.steps, layer.batch, layer.out}, "the output's gradient");
  else
    layer.requireShape(outputGrad, {layer.batch, layer.out}, "the output's gradient");
  const Tensor d = layer.state("stateGradient"), all = layer.sequence({layer.steps, layer.batch, 4 * layer.out}, "gateGradients");
  if (params.outputFullSequence)
    popops::zero(layer.graph, d, prog, layer.name);
  else
    prog.add(Copy(outputGrad, d));
  layer.overSteps(true, prog, [&](const Tensor &index, Sequence &round) {
    const Tensor kept = layer.stepOf(intermediates, index, round);
    const Tensor dOut = params.outputFullSequence ? layer.map(Add(_1, _2), {d, layer.stepOf(outputGrad, index, round)}, round) : d;
    Tensor a, da;
    if (attention.valid())
      a = layer.stepOf(attention.bySteps(), index, round);
    layer.setStep(all, backwardStep(layer, weights, kept, dOut, d, a, da, round), index, round);
    if (attention.gradient.valid())
      layer.setStep(attention.gradient, da, index, round);
  });
  if (inputGrad && params.calcInputGradients) {
    const Tensor gates = layer.ordered([&](BasicGruCellUnit u) { return column(layer, all, u); }, 2);
    *inputGrad = layer.product(gates.flatten(0, 2), sideBySide(weights.inputWeights).transpose(), prog)
                     .reshape({layer.steps, layer.batch, layer.in});
  }
  if (bwdIntermediates)
    *bwdIntermediates = all;
  return d;
}

} // namespace

Tensor gruFwd(Graph &graph, const GruParams &params, const Tensor &init, const Tensor &in, const GruWeights &weights, Tensor *intermediates,
              Sequence &prog, const DebugContext &context, const OptionFlags &options, poplin::PlanningCache *) {
  return forwards(Layer(graph, params, options, context), params, init, in, weights, intermediates, {}, prog);
}

Tensor gruBwd(Graph &graph, const GruParams &params, Sequence &prog, const Tensor &, const Tensor &intermediates, const GruWeights &weights,
              const Tensor &, const Tensor &, const Tensor &outputGrad, Tensor *inputGrad, Tensor *bwdIntermediates,
              const DebugContext &context, const OptionFlags &options, poplin::PlanningCache *) {
  return backwards(Layer(graph, params, options, context), params, prog, intermediates, weights, outputGrad, inputGrad, bwdIntermediates, {});
}

Tensor auGruFwd(Graph &graph, const GruParams &params, const Tensor &init, const Tensor &in, const GruWeights &weights, Tensor *intermediates,
                const Tensor &attentions, Sequence &prog, const DebugContext &context, const OptionFlags &options, poplin::PlanningCache *) {
  const Layer layer(graph, params, options, context);
  checkAttention(layer, attentions);
  return forwards(layer, params, init, in, weights, intermediates, {attentions, {}}, prog);
}

Tensor auGruBwd(Graph &graph, const GruParams &params, Sequence &prog, const Tensor &, const Tensor &intermediates,
                const GruWeights &weights, const Tensor &, const Tensor &, const Tensor &outputGrad, Tensor *inputGrad,
                Tensor *bwdIntermediates, const Tensor &attentions, Tensor *attentionsGrad, const DebugContext &context,
                const OptionFlags &options, poplin::PlanningCache *) {
  const Layer layer(graph, params, options, context);
  checkAttention(layer, attentions);
  Attention attention{attentions, {}};
  if (attentionsGrad) {
    attention.gradient = layer.sequence({layer.steps, layer.batch, 1}, "attentionsGradient");
    *attentionsGrad = attention.gradient.squeeze({2}).transpose();
  }
  return backwards(layer, params, prog, intermediates, weights, outputGrad, inputGrad, bwdIntermediates, attention);
}

GruWeights gruWU(Graph &graph, const GruParams &params, Sequence &prog, const Tensor &, const Tensor &intermediates,
                 const Tensor &bwdIntermediates, const GruWeights &, const Tensor &input, const Tensor &, const DebugContext &context,
                 const OptionFlags &options, poplin::PlanningCache *) {
  const Layer layer(graph, params, options, context);
  layer.requireShape(input, {layer.steps, layer.batch, layer.in}, "the input");
  layer.requireShape(bwdIntermediates, {layer.steps, layer.batch, 4 * layer.out}, "what the backward pass kept");
  const auto kept = [&](Kept k) { return intermediates.slice(k, k + 1, 1).squeeze({1}); };
  const auto dSum = [&](BasicGruCellUnit u) { return column(layer, bwdIntermediates, u); };
  const Tensor before = kept(BEFORE), dRecurrent = column(layer, bwdIntermediates, 3);
  const Tensor ofInput = layer.ordered(dSum, 2);
  const Tensor met = layer.after ? before : layer.map(Mul(_1, _2), {kept(R), before}, prog);
  const Tensor outputWeights = layer.ordered(
      [&](BasicGruCellUnit u) {
        return (u == CANDIDATE ? layer.productOverSteps(met, dRecurrent, prog) : layer.productOverSteps(before, dSum(u), prog)).expand({0});
      },
      0);
  Tensor biases = layer.sumOverSteps(ofInput, prog).reshape({units, layer.out});
  if (layer.after) {
    const Tensor ofState = layer.ordered([&](BasicGruCellUnit u) { return u == CANDIDATE ? dRecurrent : dSum(u); }, 2);
    biases = poplar::concat(biases.expand({1}), layer.sumOverSteps(ofState, prog).reshape({units, 1, layer.out}), 1);
  }
  return {oneByOne(layer.productOverSteps(input, ofInput, prog), units), outputWeights, biases};
}

Tensor gruBwdWithWU(Graph &graph, const GruParams &params, Sequence &prog, const Tensor &init, const Tensor &intermediates,
                    const GruWeights &weights, const Tensor &input, const Tensor &output, const Tensor &outputGrad, Tensor *inputGrad,
                    GruWeights &weightsGrad, const DebugContext &context, const OptionFlags &options, poplin::PlanningCache *cache) {
  Tensor kept;
  const Tensor d =
      gruBwd(graph, params, prog, init, intermediates, weights, input, output, outputGrad, inputGrad, &kept, context, options, cache);
  weightsGrad = gruWU(graph, params, prog, init, intermediates, kept, weights, input, output, context, options, cache);
  return d;
}

GruWeights auGruWU(Graph &graph, const GruParams &params, Sequence &prog, const Tensor &init, const Tensor &intermediates,
                   const Tensor &bwdIntermediates, const GruWeights &weights, const Tensor &input, const Tensor &output,
                   const DebugContext &context, const OptionFlags &options, poplin::PlanningCache *cache) {
  return gruWU(graph, params, prog, init, intermediates, bwdIntermediates, weights, input, output, context, options, cache);
}

Tensor auGruBwdWithWU(Graph &graph, const GruParams &params, Sequence &prog, const Tensor &init, const Tensor &intermediates,
                      const GruWeights &weights, const Tensor &input, const Tensor &output, const Tensor &outputGrad, Tensor *inputGrad,
                      GruWeights &weightsGrad, const Tensor &attentions, Tensor *attentionsGrad, const DebugContext &context,
                      const OptionFlags &options, poplin::PlanningCache *cache) {
  Tensor kept;
  const Tensor d = auGruBwd(graph, params, prog, init, intermediates, weights, input, output, outputGrad, inputGrad, &kept, attentions,
                            attentionsGrad, context, options, cache);
  weightsGrad = gruWU(graph, params, prog, init, intermediates, kept, weights, input, output, context, options, cache);
  return d;
}

} // namespace gru
} // namespace popnn
