// popnn: recurrent layers without gates, and the spatial softmax.
#include <popnn/Recurrent.hpp>
#include <popnn/SpatialSoftMax.hpp>

#include <poplin/MatMul.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "recurrent.hpp"

namespace popnn {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;
using poplin::PlanningCache;

namespace {

Tensor linear(Graph &graph, const Type &type, const std::vector<std::size_t> &shape, const std::string &name) {
  const Tensor t = graph.addVariable(type, shape, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// The layer of a sequence of outputs, [steps, batch, out]; `in` is the size of its input.
Recurrence layerOf(Graph &graph, const Tensor &sequence, std::size_t in, NonLinearityType type, const std::string &name) {
  if (sequence.rank() != 3)
    throw poputil::poplibs_error(name + ": a sequence of shape " + sequence.shapeToString() + "; it has steps, samples and elements");
  const rnn::RnnParams params(sequence.elementType(), sequence.dim(1), sequence.dim(0), {in, sequence.dim(2)});
  return Recurrence(graph, params, type, type, {}, name);
}

/// The layer of one step's tensors, [batch, out].
Recurrence stepLayer(Graph &graph, const Tensor &t, std::size_t in, NonLinearityType type, const std::string &name) {
  return layerOf(graph, t.expand({0}), in, type, name);
}

} // namespace

std::pair<Tensor, Tensor> spatialSoftMax2D(Graph &graph, Sequence &prog, const Tensor &fields, float temperature, bool disableSoftmax,
                                           const DebugContext &context) {
  const std::string name = contextName(context, "spatialSoftMax");
  requireLibrary(graph, "popnn");
  addLibrary(graph, "popops");
  addLibrary(graph, "poplin");
  const Type type = fields.elementType();
  if (fields.rank() != 3 || fields.numElements() == 0)
    throw poputil::poplibs_error(name + ": fields of shape " + fields.shapeToString() + "; they need three dimensions");
  const std::size_t rows = fields.dim(1), columns = fields.dim(2);
  const Tensor scale = graph.addVariable(type, {}, name + "/temperature");
  graph.setTileMapping(scale, 0);
  graph.setInitialValue(scale, temperature);
  Tensor chances = fields.reshape({fields.dim(0), rows * columns});
  if (!disableSoftmax)
    chances = softmax(graph, popops::map(graph, Divide(_1, _2), {chances, scale}, prog, name), prog, name);
  // One number between -1 and 1 for each row and each column; a single one lies in the middle.
  const auto place = [](std::size_t i, std::size_t n) { return n < 2 ? 0.f : float(2.0 * double(i) / double(n - 1) - 1.0); };
  std::vector<float> places;
  for (std::size_t i = 0; i < rows * columns; ++i) {
    places.push_back(place(i / columns, rows));
    places.push_back(place(i % columns, columns));
  }
  const Tensor coordinates = graph.addConstant<float>(type, {rows * columns, 2}, places, name + "/coordinates");
  poputil::mapTensorLinearly(graph, coordinates);
  return {poplin::matMul(graph, chances, coordinates, prog, name), scale};
}

namespace rnn {

std::vector<std::pair<poplin::MatMulParams, OptionFlags>> getMatMulPrePlanParameters(std::size_t numSteps, std::size_t batchSize,
                                                                                     std::size_t inputSize, std::size_t outputSize,
                                                                                     const Type &type, const Type &, bool inferenceOnly,
                                                                                     bool hasFeedforwardWeights) {
  std::vector<std::pair<poplin::MatMulParams, OptionFlags>> products;
  const auto add = [&](std::size_t m, std::size_t k, std::size_t n, const char *pass) {
    products.emplace_back(poplin::MatMulParams{type, type, {m, k}, {k, n}}, OptionFlags{{"fullyConnectedPass", pass}});
  };
  const char *forward = inferenceOnly ? "INFERENCE_FWD" : "TRAINING_FWD";
  if (hasFeedforwardWeights)
    add(numSteps * batchSize, inputSize, outputSize, forward);
  add(batchSize, outputSize, outputSize, forward);
  if (inferenceOnly)
    return products;
  add(batchSize, outputSize, outputSize, "TRAINING_BWD");
  add(outputSize, numSteps * batchSize, outputSize, "TRAINING_WU");
  if (hasFeedforwardWeights) {
    add(numSteps * batchSize, outputSize, inputSize, "TRAINING_BWD");
    add(outputSize, numSteps * batchSize, inputSize, "TRAINING_WU");
  }
  return products;
}

std::uint64_t getFwdFlops(unsigned steps, unsigned batch, unsigned in, unsigned out, bool weightInput) {
  return std::uint64_t(steps) * batch * out * (2 * std::uint64_t(out) + (weightInput ? 2 * std::uint64_t(in) : 0) + 1);
}
std::uint64_t getBwdFlops(unsigned steps, unsigned batch, unsigned in, unsigned out, bool calcInputGrad) {
  return std::uint64_t(steps) * batch * out * (2 * std::uint64_t(out) + (calcInputGrad ? 2 * std::uint64_t(in) : 0));
}
std::uint64_t getWuFlops(unsigned steps, unsigned batch, unsigned in, unsigned out) {
  return std::uint64_t(steps) * batch * out * (2 * std::uint64_t(out) + 2 * std::uint64_t(in) + 1);
}

Tensor createInput(Graph &graph, unsigned numSteps, unsigned batchSize, unsigned inputSize, unsigned, const Type &type, const Type &, bool,
                   const DebugContext &context, PlanningCache *) {
  return linear(graph, type, {numSteps, batchSize, inputSize}, contextName(context, "rnnInput"));
}

Tensor createFwdState(Graph &graph, const Type &type, unsigned batchSize, unsigned outputSize, Sequence &prog, bool initState, bool,
                      const DebugContext &context, PlanningCache *cache) {
  if (initState)
    return createBwdState(graph, type, batchSize, outputSize, prog, context, cache);
  return linear(graph, type, {batchSize, outputSize}, contextName(context, "rnnState"));
}

Tensor createWeightsInput(Graph &graph, unsigned, unsigned, unsigned inputSize, unsigned outputSize, const Type &type, const Type &, bool,
                          const DebugContext &context, PlanningCache *) {
  return linear(graph, type, {outputSize, inputSize}, contextName(context, "weightsInput"));
}
Tensor createWeightsFeedback(Graph &graph, unsigned, unsigned outputSize, const Type &type, const Type &, bool, const DebugContext &context,
                             PlanningCache *) {
  return linear(graph, type, {outputSize, outputSize}, contextName(context, "weightsFeedback"));
}

Tensor forwardWeightInput(Graph &graph, const Tensor &actIn, const Tensor &weights, Sequence &prog, const Type &, bool,
                          const DebugContext &context, PlanningCache *) {
  const std::string name = contextName(context, "rnnWeightInput");
  if (actIn.rank() != 3 || weights.rank() != 2 || weights.dim(1) != actIn.dim(2))
    throw poputil::poplibs_error(name + ": weights of shape " + weights.shapeToString() + " for an input of shape " + actIn.shapeToString());
  return poplin::matMul(graph, actIn.flatten(0, 2), weights.transpose(), prog, name)
      .reshape({actIn.dim(0), actIn.dim(1), weights.dim(0)});
}

Tensor forwardIterate(Graph &graph, const Tensor &feedFwdIn, const Tensor &initState, const Tensor &feedbackWeights, const Tensor &biases,
                      Sequence &prog, NonLinearityType type, const Type &, bool, const DebugContext &context, PlanningCache *) {
  const std::string name = contextName(context, "rnnForward");
  const Recurrence r = layerOf(graph, feedFwdIn, 1, type, name);
  r.requireShape(initState, {r.batch, r.out}, "initial state");
  r.requireShape(feedbackWeights, {r.out, r.out}, "feedback weights");
  r.requireShape(biases, {r.out}, "biases");
  const Tensor outputs = r.sequence({r.steps, r.batch, r.out}, "out"), state = r.state("state"), weighted = r.sequence(feedFwdIn.shape(), "in");
  prog.add(Copy(initState, state));
  prog.add(Copy(feedFwdIn, weighted));
  r.overSteps(false, prog, [&](const Tensor &index, Sequence &step) {
    const Tensor back = r.product(state, feedbackWeights.transpose(), step);
    const Tensor sum = r.map(Add(Add(_1, _2), _3), {r.stepOf(weighted, index, step), back, biases.expand({0})}, step);
    const Tensor now = r.activated(type, sum, step);
    step.add(Copy(now, state));
    r.setStep(outputs, now, index, step);
  });
  return outputs;
}

Tensor rnnFwdSequence(Graph &graph, Sequence &prog, const Tensor &fwdStateInit, const Tensor *weightedIn, const Tensor &biases,
                      const Tensor &feedFwdWeights, const Tensor &feedbackWeights, const Tensor &prevLayerActs,
                      const NonLinearityType &type, const Type &partialsType, bool inferenceOnly, const DebugContext &context,
                      PlanningCache *cache) {
  const Tensor in =
      weightedIn ? *weightedIn : forwardWeightInput(graph, prevLayerActs, feedFwdWeights, prog, partialsType, inferenceOnly, context, cache);
  return forwardIterate(graph, in, fwdStateInit, feedbackWeights, biases, prog, type, partialsType, inferenceOnly, context, cache);
}

Tensor createBwdState(Graph &graph, const Type &type, unsigned batchSize, unsigned outputSize, Sequence &prog, const DebugContext &context,
                      PlanningCache *) {
  const std::string name = contextName(context, "rnnState");
  addLibrary(graph, "popops");
  const Tensor state = linear(graph, type, {batchSize, outputSize}, name);
  popops::zero(graph, state, prog, name);
  return state;
}

Tensor backwardGradientStep(Graph &graph, const Tensor &nextLayerGrad, const Tensor &bwdState, const Tensor &actOut,
                            const Tensor &weightsFeedback, Sequence &prog, NonLinearityType type, const Type &, const DebugContext &context,
                            PlanningCache *) {
  const Recurrence r = stepLayer(graph, actOut, 1, type, contextName(context, "rnnBackward"));
  r.requireShape(nextLayerGrad, {r.batch, r.out}, "gradient of the output");
  r.requireShape(bwdState, {r.batch, r.out}, "state");
  const Tensor total = r.map(Add(_1, _2), {nextLayerGrad, r.product(bwdState, weightsFeedback, prog)}, prog);
  return r.gradient(type, actOut, total, prog);
}

std::pair<Tensor, Tensor> backwardGradientStep(Graph &graph, const Tensor &nextLayerGrad, const Tensor &bwdState, const Tensor &actOut,
                                               const Tensor &weightsInput, const Tensor &weightsFeedback, Sequence &prog,
                                               NonLinearityType type, const Type &partialsType, const DebugContext &context,
                                               PlanningCache *cache) {
  const Tensor state =
      backwardGradientStep(graph, nextLayerGrad, bwdState, actOut, weightsFeedback, prog, type, partialsType, context, cache);
  return {poplin::matMul(graph, state, weightsInput, prog, contextName(context, "rnnBackward")), state};
}

void paramDeltaUpdate(Graph &graph, const Tensor &bwdState, const Tensor &actIn, const Tensor &prevOut, Tensor &weightsInputDeltasAcc,
                      Tensor &weightsFeedbackDeltasAcc, Tensor &biasDeltasAcc, Sequence &prog, const Type &, const DebugContext &context,
                      PlanningCache *) {
  const std::string name = contextName(context, "rnnDeltas");
  poplin::matMulAcc(graph, weightsInputDeltasAcc, 1.f, bwdState.transpose(), actIn, prog, name);
  poplin::matMulAcc(graph, weightsFeedbackDeltasAcc, 1.f, bwdState.transpose(), prevOut, prog, name);
  const Tensor sums =
      popops::reduce(graph, bwdState, biasDeltasAcc.elementType(), {0}, popops::ReduceParams(popops::Operation::ADD), prog, name);
  popops::scaledAddTo(graph, biasDeltasAcc, sums, 1.f, prog, name);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> rnnBwdSequence(Graph &graph, bool doWU, bool ignoreInputGradientCalc, Sequence &prog,
                                                          const Tensor &fwdStateInit, const Tensor &fwdState, const Tensor &,
                                                          const Tensor &feedFwdWeights, const Tensor &feedbackWeights,
                                                          const Tensor &outGradient, const Tensor &actIn, const NonLinearityType &type,
                                                          const Type &partialsType, const DebugContext &context, PlanningCache *cache) {
  const std::string name = contextName(context, "rnnBackward");
  const Recurrence r = layerOf(graph, fwdState, actIn.rank() == 3 ? actIn.dim(2) : 0, type, name);
  r.requireShape(outGradient, {r.steps, r.batch, r.out}, "gradient of the outputs");
  r.requireShape(actIn, {r.steps, r.batch, r.in}, "input");
  r.requireShape(feedFwdWeights, {r.out, r.in}, "input weights");
  const Tensor sums = r.sequence({r.steps, r.batch, r.out}, "sums"), outputs = r.sequence(fwdState.shape(), "outputs"),
               gradients = r.sequence(outGradient.shape(), "gradients");
  const Tensor state = createBwdState(graph, r.type, unsigned(r.batch), unsigned(r.out), prog, context, cache);
  prog.add(Copy(fwdState, outputs));
  prog.add(Copy(outGradient, gradients));
  r.overSteps(true, prog, [&](const Tensor &index, Sequence &step) {
    const Tensor now = backwardGradientStep(graph, r.stepOf(gradients, index, step), state, r.stepOf(outputs, index, step), feedbackWeights,
                                            step, type, partialsType, context, cache);
    step.add(Copy(now, state));
    r.setStep(sums, now, index, step);
  });
  Tensor inputs, ofInput, ofFeedback, ofBiases;
  if (!ignoreInputGradientCalc)
    inputs = poplin::matMul(graph, sums.flatten(0, 2), feedFwdWeights, prog, name).reshape({r.steps, r.batch, r.in});
  if (doWU) {
    const Tensor before = poplar::concat(fwdStateInit.expand({0}), fwdState.slice(0, r.steps - 1));
    ofInput = r.productOverSteps(sums, actIn, prog);
    ofFeedback = r.productOverSteps(sums, before, prog);
    ofBiases = r.sumOverSteps(sums, prog);
  }
  return std::make_tuple(inputs, ofInput, ofFeedback, ofBiases);
}

} // namespace rnn
} // namespace popnn
