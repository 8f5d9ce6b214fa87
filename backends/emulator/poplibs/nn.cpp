// popnn: non-linearities and losses, as expressions and reductions.
#include <popnn/LogSoftmax.hpp>
#include <popnn/Loss.hpp>
#include <popnn/NonLinearity.hpp>

#include <popops/Encoding.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "reduce.hpp"

namespace popnn {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Sequence;

namespace {

constexpr double rootTwoOverPi = 0.7978845608028654, cubic = 0.044715;

bool isSoftmax(NonLinearityType type) {
  return type == NonLinearityType::SOFTMAX || type == NonLinearityType::SOFTMAX_STABLE || type == NonLinearityType::SOFTMAX_SCALED;
}

Any expression(NonLinearityType type) {
  switch (type) {
  case NonLinearityType::SIGMOID:
    return Sigmoid(_1);
  case NonLinearityType::HARD_SIGMOID:
    return Clamp(Add(Mul(_1, Const(0.2f)), Const(0.5f)), Const(0.f), Const(1.f));
  case NonLinearityType::RELU:
    return Relu(_1);
  case NonLinearityType::TANH:
    return Tanh(_1);
  case NonLinearityType::GELU:
    return Mul(Mul(_1, Const(0.5f)),
               Add(Const(1.f), Tanh(Mul(Const(rootTwoOverPi), Add(_1, Mul(Const(cubic), Mul(_1, Square(_1))))))));
  case NonLinearityType::GELU_ERF:
    return GeluErf(_1);
  default:
    return Mul(_1, Sigmoid(_1));
  }
}

/// The gradient from the output _1 (the input, for GELU and SWISH) and its gradient _2.
Any gradient(NonLinearityType type) {
  switch (type) {
  case NonLinearityType::SIGMOID:
    return Mul(_2, Mul(_1, Sub(Const(1.f), _1)));
  case NonLinearityType::HARD_SIGMOID:
    return Select(Mul(_2, Const(0.2f)), Mul(_2, Const(0.f)), And(Gt(_1, Const(0.f)), Lt(_1, Const(1.f))));
  case NonLinearityType::RELU:
    return Select(_2, Mul(_2, Const(0.f)), Gt(_1, Const(0.f)));
  case NonLinearityType::TANH:
    return Mul(_2, Sub(Const(1.f), Square(_1)));
  case NonLinearityType::SWISH:
    return Mul(_2, Mul(Sigmoid(_1), Add(Const(1.f), Mul(_1, Sub(Const(1.f), Sigmoid(_1))))));
  case NonLinearityType::GELU_ERF:
    return Mul(_2, Add(Mul(Const(0.5f), Add(Const(1.f), Erf(Mul(_1, Const(0.70710678f))))),
                       Mul(_1, Mul(Const(0.39894228f), Exp(Mul(Const(-0.5f), Square(_1)))))));
  default: {
    const Any inner = Mul(Const(rootTwoOverPi), Add(_1, Mul(Const(cubic), Mul(_1, Square(_1)))));
    const Any slope = Mul(Const(rootTwoOverPi), Add(Const(1.f), Mul(Const(3 * cubic), Square(_1))));
    return Mul(_2, Add(Mul(Const(0.5f), Add(Const(1.f), Tanh(inner))),
                       Mul(Mul(Const(0.5f), _1), Mul(Sub(Const(1.f), Square(Tanh(inner))), slope))));
  }
  }
}

/// The reduction of each row of [rows, n], as [rows, 1].
Tensor ofRows(Graph &graph, const Tensor &rows, popops::Operation op, const poplar::Type &type, Sequence &prog, const std::string &name) {
  const Tensor out = outputLike(graph, type, {rows.dim(0)}, {}, name);
  std::vector<poplar::ComputeSet> computeSets;
  reduceRows(graph, rows, out, popops::ReduceParams(op), computeSets, 0, name);
  for (const poplar::ComputeSet &computeSet : computeSets)
    prog.add(poplar::program::Execute(computeSet));
  return out.expand({1});
}

/// PopLibs compose softmax of vertices of popops; the other functions have vertices of their own.
const char *libraryOf(NonLinearityType type) { return isSoftmax(type) ? "popops" : "popnn"; }

void softmaxTo(Graph &graph, const Tensor &t, const Tensor &out, Sequence &prog, const std::string &name) {
  const std::size_t n = t.dim(t.rank() - 1);
  const Tensor in = t.reshape({t.numElements() / std::max<std::size_t>(1, n), n}), to = out.reshape(in.shape());
  const Tensor most = ofRows(graph, in, popops::Operation::MAX, in.elementType(), prog, name + "/Max");
  mapTo(graph, Exp(Sub(_1, _2)), {in, most}, to, prog, name + "/Exp");
  const Tensor sum = ofRows(graph, to, popops::Operation::ADD, poplar::FLOAT, prog, name + "/Sum");
  mapTo(graph, Divide(_1, popops::expr::Cast(_2, in.elementType())), {to, sum}, to, prog, name + "/Divide");
}

/// The maximum is subtracted first, so that no exponential is too large and one of them is 1.
void logSoftmaxTo(Graph &graph, const Tensor &t, const Tensor &out, Sequence &prog, const std::string &name) {
  requireLibrary(graph, "popops");
  if (t.rank() == 0 || t.numElements() == 0)
    throw poputil::poplibs_error(name + ": a tensor of shape " + t.shapeToString() + " has no rows");
  const Tensor in = t.reshape({t.numElements() / t.dim(t.rank() - 1), t.dim(t.rank() - 1)}), to = out.reshape(in.shape());
  const Tensor most = ofRows(graph, in, popops::Operation::MAX, in.elementType(), prog, name + "/Max");
  mapTo(graph, Sub(_1, _2), {in, most}, to, prog, name + "/Sub");
  const Tensor powers = outputLike(graph, poplar::FLOAT, in.shape(), {to}, name + "/Powers");
  mapTo(graph, Exp(popops::expr::Cast(_1, poplar::FLOAT)), {to}, powers, prog, name + "/Exp");
  const Tensor sum = ofRows(graph, powers, popops::Operation::ADD, poplar::FLOAT, prog, name + "/Sum");
  mapTo(graph, Sub(_1, popops::expr::Cast(Log(_2), in.elementType())), {to, sum}, to, prog, name + "/Log");
}

} // namespace

Tensor logSoftmax(Graph &graph, Tensor t, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "logSoftmax");
  const Tensor out = outputLike(graph, t.elementType(), t.shape(), {t}, name + "/Out");
  logSoftmaxTo(graph, t, out, prog, name);
  return out;
}

void logSoftmaxInPlace(Graph &graph, Tensor t, Sequence &prog, const DebugContext &context) {
  logSoftmaxTo(graph, t, t, prog, contextName(context, "logSoftmax"));
}

void nonLinearityInPlace(Graph &graph, NonLinearityType type, Tensor t, Sequence &prog, const DebugContext &context, const OptionFlags &) {
  requireLibrary(graph, libraryOf(type));
  const std::string name = contextName(context, "nonLinearity");
  if (isSoftmax(type))
    softmaxTo(graph, t, t, prog, name);
  else
    mapTo(graph, expression(type), {t}, t, prog, name);
}

Tensor nonLinearity(Graph &graph, NonLinearityType type, Tensor t, Sequence &prog, const DebugContext &context, const OptionFlags &) {
  requireLibrary(graph, libraryOf(type));
  const std::string name = contextName(context, "nonLinearity");
  const Tensor out = outputLike(graph, t.elementType(), t.shape(), {t}, name + "/Out");
  if (isSoftmax(type))
    softmaxTo(graph, t, out, prog, name);
  else
    mapTo(graph, expression(type), {t}, out, prog, name);
  return out;
}

Tensor nonLinearityInputGradient(Graph &graph, NonLinearityType type, Tensor out, Tensor outGradient, Sequence &prog, const DebugContext &context,
                                 const OptionFlags &) {
  requireLibrary(graph, libraryOf(type));
  const std::string name = contextName(context, "nonLinearityGradient");
  const Tensor result = outputLike(graph, out.elementType(), out.shape(), {outGradient, out}, name + "/Out");
  if (!isSoftmax(type)) {
    mapTo(graph, gradient(type), {out, outGradient}, result, prog, name);
    return result;
  }
  const std::size_t n = out.dim(out.rank() - 1);
  const std::vector<std::size_t> shape{out.numElements() / std::max<std::size_t>(1, n), n};
  const Tensor y = out.reshape(shape), dy = outGradient.reshape(shape), product = outputLike(graph, out.elementType(), shape, {y}, name + "/Product");
  mapTo(graph, Mul(_1, _2), {y, dy}, product, prog, name + "/Product");
  const Tensor sum = ofRows(graph, product, popops::Operation::ADD, out.elementType(), prog, name + "/Sum");
  mapTo(graph, Mul(_1, Sub(_2, _3)), {y, dy, sum}, result.reshape(shape), prog, name);
  return result;
}

poplar::program::Program calcLoss(Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &loss, const Tensor &deltas,
                                  LossType lossType, const DebugContext &context) {
  requireLibrary(graph, "popnn");
  const std::string name = contextName(context, "calcLoss");
  Sequence prog(name);
  const std::vector<std::size_t> shape = modelOutputs.shape();
  if (shape.size() != 2 || deltas.shape() != shape || loss.numElements() != shape[0])
    throw poputil::poplibs_error(name + ": outputs of shape " + modelOutputs.shapeToString() + ", gradients " + deltas.shapeToString() +
                                 ", losses " + loss.shapeToString());
  Tensor wanted = expected;
  if (expected.shape() != shape) {
    wanted = outputLike(graph, modelOutputs.elementType(), shape, {modelOutputs}, name + "/OneHot");
    addLibrary(graph, "popops");
    popops::encodeOneHot(graph, expected, wanted, prog, name + "/OneHot");
  }
  const bool squared = lossType == SUM_SQUARED_LOSS;
  mapTo(graph, Sub(_1, _2), {modelOutputs, wanted}, deltas, prog, name + "/Delta");
  const Tensor terms = outputLike(graph, modelOutputs.elementType(), shape, {modelOutputs}, name + "/Terms");
  // A probability of zero would cause an infinite loss.
  if (squared)
    mapTo(graph, Mul(Const(0.5f), Square(_1)), {deltas}, terms, prog, name + "/Terms");
  else
    mapTo(graph, Neg(Mul(_2, Log(Max(_1, Const(1e-7f))))), {modelOutputs, wanted}, terms, prog, name + "/Terms");
  std::vector<poplar::ComputeSet> computeSets;
  reduceRows(graph, terms, loss.flatten(), popops::ReduceParams(popops::Operation::ADD), computeSets, 0, name + "/Loss");
  for (const poplar::ComputeSet &computeSet : computeSets)
    prog.add(poplar::program::Execute(computeSet));
  return prog;
}

namespace {

/// Adds the number of correctly classified rows to `numCorrect`.
void countRight(Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &numCorrect, Sequence &prog, const std::string &name) {
  const Tensor best = argMax(graph, modelOutputs, prog, name + "/Best");
  const Tensor right = outputLike(graph, numCorrect.elementType(), best.shape(), {best}, name + "/Right");
  const Tensor classes = expected.shape() == modelOutputs.shape() ? argMax(graph, expected, prog, name + "/Expected") : expected.flatten();
  mapTo(graph, popops::expr::Cast(Equal(popops::expr::Cast(_1, poplar::UNSIGNED_INT), popops::expr::Cast(_2, poplar::UNSIGNED_INT)), numCorrect.elementType()),
        {best, classes}, right, prog, name + "/Right");
  std::vector<poplar::ComputeSet> computeSets;
  reduceRows(graph, right.expand({0}), numCorrect.flatten(), popops::ReduceParams(popops::Operation::ADD, true), computeSets, 0, name + "/Correct");
  for (const poplar::ComputeSet &computeSet : computeSets)
    prog.add(poplar::program::Execute(computeSet));
}

} // namespace

poplar::program::Program calcAccuracy(Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &numCorrect,
                                      const DebugContext &context) {
  requireLibrary(graph, "popnn");
  const std::string name = contextName(context, "calcAccuracy");
  if (modelOutputs.rank() != 2 || numCorrect.numElements() != 1)
    throw poputil::poplibs_error(name + ": outputs of shape " + modelOutputs.shapeToString() + ", a count of shape " + numCorrect.shapeToString());
  Sequence prog(name);
  popops::zero(graph, numCorrect, prog, name);
  countRight(graph, modelOutputs, expected, numCorrect, prog, name);
  return prog;
}

poplar::program::Program calcLoss(Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &loss, const Tensor &deltas,
                                  const Tensor &deltasScale, const Tensor &modelOutputScaling, LossType lossType, const DebugContext &context) {
  const std::string name = contextName(context, "calcLoss");
  Sequence prog(name);
  const Tensor outputs = outputLike(graph, modelOutputs.elementType(), modelOutputs.shape(), {modelOutputs}, name + "/Outputs");
  mapTo(graph, Divide(_1, popops::expr::Cast(_2, modelOutputs.elementType())), {modelOutputs, modelOutputScaling}, outputs, prog, name);
  prog.add(calcLoss(graph, outputs, expected, loss, deltas, lossType, context));
  mapTo(graph, Mul(_1, popops::expr::Cast(_2, deltas.elementType())), {deltas, deltasScale}, deltas, prog, name);
  return prog;
}

poplar::program::Program calcLoss(Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &loss, const Tensor &deltas,
                                  const Tensor &deltasScale, const Tensor &modelOutputScaling, const Tensor &numCorrect, LossType lossType,
                                  const DebugContext &context) {
  Sequence prog;
  prog.add(calcLoss(graph, modelOutputs, expected, loss, deltas, deltasScale, modelOutputScaling, lossType, context));
  countRight(graph, modelOutputs, expected, numCorrect, prog, contextName(context, "calcLoss"));
  return prog;
}

void nonLinearityInPlace(Graph &graph, NonLinearityType type, Tensor t, poplar::ComputeSet &computeSet, const DebugContext &context) {
  const std::string name = contextName(context, "nonLinearity");
  requireLibrary(graph, "popnn");
  if (isSoftmax(type))
    throw poputil::poplibs_error(name + ": a softmax needs several compute sets, so call the form with a program");
  addElementWork(graph, computeSet, expression(type), {t}, t, name);
}

Tensor nonLinearityInputGradient(Graph &graph, NonLinearityType type, Tensor out, Tensor outGradient, poplar::ComputeSet &computeSet,
                                 const DebugContext &context) {
  const std::string name = contextName(context, "nonLinearityGradient");
  requireLibrary(graph, "popnn");
  if (isSoftmax(type))
    throw poputil::poplibs_error(name + ": the gradient of a softmax needs several compute sets, so call the form with a program");
  const Tensor result = outputLike(graph, out.elementType(), out.shape(), {outGradient, out}, name + "/Out");
  addElementWork(graph, computeSet, gradient(type), {out, outGradient}, result, name);
  return result;
}

poplar::program::Program calcLoss(Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &loss, const Tensor &deltas,
                                  const Tensor &numCorrect, LossType lossType, const DebugContext &context) {
  Sequence prog;
  prog.add(calcLoss(graph, modelOutputs, expected, loss, deltas, lossType, context));
  const std::string name = contextName(context, "calcLoss");
  countRight(graph, modelOutputs, expected, numCorrect, prog, name);
  return prog;
}

} // namespace popnn
