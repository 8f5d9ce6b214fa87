// popnn/Rnn.hpp, and code that LSTM and GRU share.
#include "recurrent.hpp"

#include <algorithm>

#include <popnn/NonLinearity.hpp>
#include <poplin/MatMul.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/Loop.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

namespace poplibs {

using namespace popops::expr;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

/// Activations whose gradient follows from their output.
bool isInvertible(popnn::NonLinearityType type) {
  using popnn::NonLinearityType;
  return type == NonLinearityType::SIGMOID || type == NonLinearityType::HARD_SIGMOID || type == NonLinearityType::TANH ||
         type == NonLinearityType::RELU;
}

/// These select how work is divided, or how much is kept; results do not change.
constexpr const char *knownOptions[] = {"availableMemoryProportion",
                                        "codeReuse",
                                        "fullyConnectedPass",
                                        "inferenceOnly",
                                        "maxUnroll",
                                        "numShards",
                                        "partialsType",
                                        "preCalcWeights",
                                        "recomputationMode",
                                        "rnnCodeReuse",
                                        "rnnStepsPerWU",
                                        "use128BitConvUnitLoad",
                                        "weightAccumulatorsType"};

} // namespace

void overSteps(Graph &graph, std::size_t steps, bool backwards, const std::string &name, Sequence &prog, const StepBody &body) {
  prog.add(popops::countedLoop(
      graph, steps,
      [&](const Tensor &counter) {
        Sequence round(name);
        Tensor index = counter;
        if (backwards) {
          index = graph.clone(counter, name + "/index");
          mapTo(graph, Sub(Const(unsigned(steps - 1)), _1), {counter}, index, round, name + "/index");
        }
        body(index, round);
        return round;
      },
      name));
}

Recurrence::Recurrence(Graph &graph_, const popnn::rnn::RnnParams &params, popnn::NonLinearityType cell_, popnn::NonLinearityType gates_,
                       const poplar::OptionFlags &options, std::string name_)
    : graph(graph_), type(params.dataType), steps(params.maxTimeSteps), batch(params.batchSize), name(std::move(name_)), cell(cell_),
      gates(gates_) {
  requireLibrary(graph, "popnn");
  addLibrary(graph, "popops");
  addLibrary(graph, "poplin");
  if (params.layerSizes.size() != 2)
    throw poputil::poplibs_error(name + ": " + std::to_string(params.layerSizes.size()) +
                                 " layer sizes; one layer has two, of its input and its output");
  in = params.layerSizes[0];
  out = params.layerSizes[1];
  if (params.variableTimeSteps())
    throw poputil::poplibs_error(name + ": the emulator runs every sequence to its last step, so varTimeSteps must be left out");
  if (steps == 0 || batch == 0 || in == 0 || out == 0)
    throw poputil::poplibs_error(name + ": a layer without steps, samples, inputs or outputs");
  if (!isInvertible(cell) || !isInvertible(gates))
    throw poputil::poplibs_error(name + ": activations of a recurrent layer are SIGMOID, HARD_SIGMOID, TANH or RELU");
  for (const auto &option : options)
    if (std::none_of(std::begin(knownOptions), std::end(knownOptions), [&](const char *known) { return option.first == known; }))
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
}

Tensor Recurrence::sequence(std::vector<std::size_t> shape, const std::string &what) const {
  return popops::createSliceableTensor(graph, type, shape, {0}, {1}, 0, name + "/" + what);
}

Tensor Recurrence::state(const std::string &what) const {
  const Tensor t = graph.addVariable(type, {batch, out}, name + "/" + what);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

Tensor Recurrence::stepOf(const Tensor &sequence, const Tensor &index, Sequence &prog) const {
  return popops::dynamicSlice(graph, sequence, index, {0}, {1}, prog, name + "/step").squeeze({0});
}

void Recurrence::setStep(const Tensor &sequence, const Tensor &value, const Tensor &index, Sequence &prog) const {
  popops::dynamicUpdate(graph, sequence, value.expand({0}), index, {0}, {1}, prog, name + "/step");
}

void Recurrence::overSteps(bool backwards, Sequence &prog, const StepBody &body) const {
  poplibs::overSteps(graph, steps, backwards, name, prog, body);
}

Tensor Recurrence::map(const Expr &expression, const std::vector<Tensor> &tensors, Sequence &prog) const {
  return popops::map(graph, expression, tensors, prog, name);
}

Tensor Recurrence::activated(popnn::NonLinearityType function, const Tensor &t, Sequence &prog) const {
  return popnn::nonLinearity(graph, function, t, prog, name + "/activation");
}

Tensor Recurrence::gradient(popnn::NonLinearityType function, const Tensor &value, const Tensor &valueGradient, Sequence &prog) const {
  return popnn::nonLinearityInputGradient(graph, function, value, valueGradient, prog, name + "/activationGradient");
}

Tensor Recurrence::product(const Tensor &a, const Tensor &b, Sequence &prog) const {
  return poplin::matMul(graph, a, b, prog, type, name + "/product");
}

Tensor Recurrence::productOverSteps(const Tensor &a, const Tensor &b, Sequence &prog) const {
  return product(a.flatten(0, 2).transpose(), b.flatten(0, 2), prog);
}

Tensor Recurrence::sumOverSteps(const Tensor &t, Sequence &prog) const {
  return popops::reduce(graph, t.flatten(0, 2), {0}, popops::ReduceParams(popops::Operation::ADD), prog, name + "/sum");
}

void Recurrence::requireShape(const Tensor &t, const std::vector<std::size_t> &shape, const char *what) const {
  if (t.shape() == shape && t.elementType() == type)
    return;
  std::string wanted;
  for (std::size_t d : shape)
    wanted += (wanted.empty() ? "" : ",") + std::to_string(d);
  throw poputil::poplibs_error(name + ": " + what + " is of type " + t.elementType().toString() + " and shape " + t.shapeToString() +
                               ", not of type " + type.toString() + " and shape {" + wanted + "}");
}

} // namespace poplibs

namespace popnn {
namespace rnn {

using namespace poplibs;
using poplar::DebugContext;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

std::size_t sizeOf(const RnnParams &params, bool isOutput) {
  if (params.layerSizes.size() < 2)
    throw poputil::poplibs_error("a recurrent layer has two sizes, of its input and its output");
  return params.layerSizes[isOutput];
}

std::size_t bytesPerTile(const poplar::Graph &graph, const RnnParams &params, bool isOutput) {
  const std::size_t tiles = graph.getTarget().getNumTiles();
  return (params.batchSize * sizeOf(params, isOutput) * params.dataType.size() + tiles - 1) / tiles;
}

Tensor steps(poplar::Graph &graph, const RnnParams &params, std::size_t rows, std::size_t size, const DebugContext &context,
             const char *what) {
  return popops::createSliceableTensor(graph, params.dataType, {rows, params.batchSize, size}, {0}, {1}, 0, contextName(context, what));
}

/// Shards divide a sequence among groups of tiles; the emulator's results do not depend on them.
void checkShards(const RnnParams &params, unsigned numShards) {
  if (numShards == 0 || numShards > params.maxTimeSteps)
    throw poputil::poplibs_error(std::to_string(numShards) + " shards of a sequence of " + std::to_string(params.maxTimeSteps) + " steps");
}

} // namespace

std::size_t RnnParams::getMaxShards(const poplar::Graph &) const { return maxTimeSteps; }
std::size_t RnnParams::getInputBytesPerTile(const poplar::Graph &graph) const { return bytesPerTile(graph, *this, false); }
std::size_t RnnParams::getOutputBytesPerTile(const poplar::Graph &graph) const { return bytesPerTile(graph, *this, true); }

Tensor createInitialState(poplar::Graph &graph, const RnnParams &params, bool isOutput, unsigned multiple, unsigned numShards,
                          const DebugContext &context) {
  checkShards(params, numShards);
  const Tensor t =
      graph.addVariable(params.dataType, {multiple, params.batchSize, sizeOf(params, isOutput)}, contextName(context, "initialState"));
  poputil::mapTensorLinearly(graph, t);
  return t;
}

Tensor createRecurrentTensor(poplar::Graph &graph, const RnnParams &params, unsigned size, unsigned numShards,
                             const DebugContext &context) {
  checkShards(params, numShards);
  return steps(graph, params, params.maxTimeSteps, size, context, "recurrent");
}

Tensor createInputTensor(poplar::Graph &graph, const RnnParams &params, unsigned numShards, const DebugContext &context) {
  return createRecurrentTensor(graph, params, unsigned(sizeOf(params, false)), numShards, context);
}

Tensor createOutputTensor(poplar::Graph &graph, const RnnParams &params, unsigned numShards, const DebugContext &context) {
  return createRecurrentTensor(graph, params, unsigned(sizeOf(params, true)), numShards, context);
}

Tensor createOutputTensor(poplar::Graph &graph, const RnnParams &params, unsigned multiple, unsigned numShards,
                          const DebugContext &context) {
  checkShards(params, numShards);
  return steps(graph, params, multiple * params.maxTimeSteps, sizeOf(params, true), context, "outputs");
}

Tensor shiftRnnTensor(poplar::Graph &graph, const RnnParams &params, const Tensor &base, const Tensor &single, Sequence &prog,
                      unsigned numShards, const DebugContext &context) {
  checkShards(params, numShards);
  const Tensor first = duplicate(graph, single, prog, contextName(context, "shifted"));
  return poplar::concat(first.reshape(base.slice(0, 1).shape()), base.slice(0, base.dim(0) - 1));
}

} // namespace rnn
} // namespace popnn
