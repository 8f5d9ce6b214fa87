// poplin: several convolutions, operations that they take, and functions about plans.
#include <poplin/MultiConvolution.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include <poplin/ConvPreplan.hpp>
#include <poplin/ConvUtil.hpp>
#include <poplin/FullyConnected.hpp>
#include <poputil/exceptions.hpp>

#include "builtin.hpp"

namespace poplin {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;

namespace {

/// The products of a pass over all samples, groups and kernel elements that meet an input.
std::uint64_t products(const ConvParams &p) {
  std::uint64_t n = std::uint64_t(p.batchSize) * p.getNumInputChans() * p.outputChannelsPerConvGroup;
  for (unsigned dim = 0; dim < p.getNumFieldDims(); ++dim) {
    std::uint64_t met = 0;
    for (unsigned out = 0; out < p.getOutputSize(dim); ++out)
      for (unsigned k = 0; k < p.kernelShape[dim]; ++k)
        met += getInputIndex(dim, out, k, p) != ~0u;
    n *= met;
  }
  return n;
}

/// Cycles if every tile multiplies without waiting: 64 products of halves or 16 of floats in each.
double perfectCycles(const Graph &graph, const ConvParams &p) {
  const double perCycle = p.inputType == poplar::HALF ? 64 : 16;
  return double(products(p)) / (perCycle * graph.getTarget().getNumTiles());
}

void onlyKnown(const OptionFlags &options, std::initializer_list<const char *> names, const char *what) {
  for (const auto &option : options)
    if (std::none_of(names.begin(), names.end(), [&](const char *name) { return option.first == name; }))
      throw poplar::invalid_option(std::string(what) + ": no option '" + option.first + "'");
}

OptionFlags joined(OptionFlags options, const OptionFlags &own) {
  for (const auto &option : own)
    options.set(option.first, option.second);
  return options;
}

template <class Args> const Args &chosen(const std::vector<Args> &args, unsigned index) {
  if (index >= args.size())
    throw poputil::poplibs_error("multiconv: convolution " + std::to_string(index) + " of " + std::to_string(args.size()));
  return args[index];
}

} // namespace

std::uint64_t getFwdFlops(const ConvParams &params) { return 2 * products(params); }
std::uint64_t getBwdFlops(const ConvParams &params) { return 2 * products(params); }
std::uint64_t getWuFlops(const ConvParams &params) { return 2 * products(params); }
double getFwdPerfectCycleCount(const Graph &graph, const ConvParams &params) { return perfectCycles(graph, params); }
double getBwdPerfectCycleCount(const Graph &graph, const ConvParams &params) { return perfectCycles(graph, params); }
double getWuPerfectCycleCount(const Graph &graph, const ConvParams &params) { return perfectCycles(graph, params); }

namespace {

std::size_t elementsOf(const std::vector<std::size_t> &shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t(1), std::multiplies<>());
}

} // namespace

void reportPlanInfo(std::ostream &out, const Graph &graph, const ConvParams &p, const OptionFlags &, PlanningCache *) {
  const std::size_t rows = p.batchSize * elementsOf(p.getOutputFieldShape()), terms = p.inputChannelsPerConvGroup * elementsOf(p.kernelShape);
  matMulGroupedReportPlan(out, graph, p.inputType, p.outputType, {p.numConvGroups, rows, terms},
                          {p.numConvGroups, terms, p.outputChannelsPerConvGroup});
}

void reportWeightUpdatePlanInfo(std::ostream &out, const Graph &graph, const ConvParams &p, const OptionFlags &, PlanningCache *) {
  const std::size_t terms = p.batchSize * elementsOf(p.getOutputFieldShape()), columns = p.inputChannelsPerConvGroup * elementsOf(p.kernelShape);
  matMulGroupedReportPlan(out, graph, p.inputType, p.inputType, {p.numConvGroups, p.outputChannelsPerConvGroup, terms},
                          {p.numConvGroups, terms, columns});
}

void convolutionValidateOptions(const OptionFlags &options) {
  onlyKnown(options,
            {"availableMemoryProportion", "disableTransformations", "enableConvDithering", "enableFastReduce", "enableMultiStageReduce",
             "enableSingleInputReduce", "gatherConvOutput", "insertTransformsCycleCountProportion", "maxOutputMemoryProportion", "numIPUs",
             "partialsType", "partialsType.interIPU", "partialsType.interTile", "pass", "planConstraints", "planConstraintsOutputFilename",
             "remapOutputTensor", "startTileMultiplier", "tilesPerIPU", "use128BitConvUnitLoad", "weightUpdateMethod"},
            "convolution");
}

void matmulValidateOptions(const OptionFlags &options) {
  onlyKnown(options,
            {"availableMemoryProportion", "enableFastReduce", "enableMultiStageReduce", "fullyConnectedPass", "gatherOutput",
             "inputRHSIsPreArranged", "partialsType", "planConstraints", "planConstraintsOutputFilename", "remapOutputTensor",
             "use128BitConvUnitLoad"},
            "matMul");
}

bool operator<(const MatMulParams &a, const MatMulParams &b) {
  const auto key = [](const MatMulParams &p) {
    return std::make_tuple(p.inputType.toString(), p.outputType.toString(), p.aShape, p.bShape);
  };
  return key(a) < key(b);
}

namespace fc {

std::vector<std::pair<MatMulParams, OptionFlags>> getMatMulPrePlanParameters(FullyConnectedParams p, OptionFlags options, poplar::Type type,
                                                                             bool inferenceOnly) {
  const auto product = [&](std::size_t m, std::size_t k, std::size_t n, const char *pass) {
    OptionFlags own = options;
    own.set("fullyConnectedPass", pass);
    return std::make_pair(MatMulParams{type, type, {p.numGroups, m, k}, {p.numGroups, k, n}}, own);
  };
  if (inferenceOnly)
    return {product(p.batchSize, p.inputSize, p.outputSize, "INFERENCE_FWD")};
  return {product(p.batchSize, p.inputSize, p.outputSize, "TRAINING_FWD"), product(p.batchSize, p.outputSize, p.inputSize, "TRAINING_BWD"),
          product(p.inputSize, p.batchSize, p.outputSize, "TRAINING_WU")};
}

} // namespace fc

namespace multiconv {

Tensor createWeights(Graph &graph, const std::vector<CreateTensorArgs> &args, unsigned weightsIndex, const OptionFlags &options,
                     PlanningCache *cache) {
  const CreateTensorArgs &one = chosen(args, weightsIndex);
  return poplin::createWeights(graph, one.params, one.name, joined(options, one.options), cache);
}

Tensor createInput(Graph &graph, const std::vector<CreateTensorArgs> &args, unsigned inputIndex, const OptionFlags &options,
                   PlanningCache *cache) {
  const CreateTensorArgs &one = chosen(args, inputIndex);
  return poplin::createInput(graph, one.params, one.name, joined(options, one.options), cache);
}

void weightsTransposeChansFlipXY(Graph &graph, std::vector<ConvolutionArgs> &args, const std::vector<Tensor> &weightsIn, Sequence &prog,
                                 const OptionFlags &options, const DebugContext &context, PlanningCache *cache) {
  if (args.size() != weightsIn.size())
    throw poputil::poplibs_error("multiconv: weights of " + std::to_string(weightsIn.size()) + " of " + std::to_string(args.size()) +
                                 " convolutions");
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i].weights.valid())
      args[i].weights = poplin::createWeights(graph, args[i].params, context, joined(options, args[i].options), cache);
    poplin::weightsTransposeChansFlipXY(graph, weightsIn[i], args[i].weights, prog, context, joined(options, args[i].options));
  }
}

std::vector<Tensor> convolution(Graph &graph, const std::vector<ConvolutionArgs> &args, bool transposeAndFlipWeights, Sequence &prog,
                                const DebugContext &context, const OptionFlags &options, PlanningCache *cache) {
  std::vector<Tensor> results;
  for (const ConvolutionArgs &one : args)
    results.push_back(poplin::convolution(graph, one.inputs, one.weights, one.params, transposeAndFlipWeights, prog, context,
                                          joined(options, one.options), cache));
  return results;
}

std::vector<Tensor> calculateWeightDeltas(Graph &graph, const std::vector<CalculateWeightDeltasArgs> &args, Sequence &prog,
                                          const DebugContext &context, const OptionFlags &options, PlanningCache *cache) {
  std::vector<Tensor> results;
  for (const CalculateWeightDeltasArgs &one : args)
    results.push_back(poplin::calculateWeightDeltas(graph, one.zDeltas, one.activations, one.params, prog, context,
                                                    joined(options, one.options), cache));
  return results;
}

namespace {

template <class Args>
void update(Graph &graph, const std::vector<Args> &args, Sequence &prog, const DebugContext &context, const OptionFlags &options,
            PlanningCache *cache) {
  for (const Args &one : args)
    poplin::convolutionWeightUpdate(graph, one.zDeltas, one.weights, one.activations, one.params, one.scale, prog, context,
                                    joined(options, one.options), cache);
}

} // namespace

void convolutionWeightUpdate(Graph &graph, const std::vector<ConvWeightUpdateArgs> &args, Sequence &prog, const DebugContext &context,
                             const OptionFlags &options, PlanningCache *cache) {
  update(graph, args, prog, context, options, cache);
}
void convolutionWeightUpdate(Graph &graph, const std::vector<ConvWeightUpdateArgsScalar> &args, Sequence &prog, const DebugContext &context,
                             const OptionFlags &options, PlanningCache *cache) {
  update(graph, args, prog, context, options, cache);
}

} // namespace multiconv
} // namespace poplin
