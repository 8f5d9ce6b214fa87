// Several convolutions in one call. The emulator runs them one after another, each like a convolution of its own.
#ifndef SNNC_POPLIN_MULTI_CONVOLUTION_HPP
#define SNNC_POPLIN_MULTI_CONVOLUTION_HPP
#include <string>
#include <vector>
#include <poplin/Convolution.hpp>
namespace poplin {
namespace multiconv {
struct CreateTensorArgs {
  ConvParams params;
  poplar::OptionFlags options;
  std::string name;
};
struct ConvolutionArgs {
  poplar::Tensor inputs, weights;
  ConvParams params;
  poplar::OptionFlags options;
};
struct CalculateWeightDeltasArgs {
  poplar::Tensor zDeltas, activations;
  ConvParams params;
  poplar::OptionFlags options;
};
struct ConvWeightUpdateArgs {
  poplar::Tensor zDeltas, weights, activations, scale;
  ConvParams params;
  poplar::OptionFlags options;
};
struct ConvWeightUpdateArgsScalar {
  poplar::Tensor zDeltas, weights, activations;
  float scale;
  ConvParams params;
  poplar::OptionFlags options;
};

/// The weights, or the input, of one of the convolutions.
poplar::Tensor createWeights(poplar::Graph &graph, const std::vector<CreateTensorArgs> &args, unsigned weightsIndex,
                             const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
poplar::Tensor createInput(poplar::Graph &graph, const std::vector<CreateTensorArgs> &args, unsigned inputIndex,
                           const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// `weightsIn` with exchanged channels and reversed fields becomes the weights of `args`.
void weightsTransposeChansFlipXY(poplar::Graph &graph, std::vector<ConvolutionArgs> &args, const std::vector<poplar::Tensor> &weightsIn,
                                 poplar::program::Sequence &prog, const poplar::OptionFlags &options, const poplar::DebugContext &context,
                                 PlanningCache *cache);
std::vector<poplar::Tensor> convolution(poplar::Graph &graph, const std::vector<ConvolutionArgs> &args, bool transposeAndFlipWeights,
                                        poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                        const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
std::vector<poplar::Tensor> calculateWeightDeltas(poplar::Graph &graph, const std::vector<CalculateWeightDeltasArgs> &args,
                                                  poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                                  const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
void convolutionWeightUpdate(poplar::Graph &graph, const std::vector<ConvWeightUpdateArgs> &args, poplar::program::Sequence &prog,
                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                             PlanningCache *cache = nullptr);
void convolutionWeightUpdate(poplar::Graph &graph, const std::vector<ConvWeightUpdateArgsScalar> &args, poplar::program::Sequence &prog,
                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                             PlanningCache *cache = nullptr);
} // namespace multiconv
} // namespace poplin
#endif
