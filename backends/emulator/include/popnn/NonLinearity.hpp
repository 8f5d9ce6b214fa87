// Activation functions and their gradients.
#ifndef SNNC_POPNN_NON_LINEARITY_HPP
#define SNNC_POPNN_NON_LINEARITY_HPP
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popnn/NonLinearityDef.hpp>
namespace popnn {
/// Applies the function to every element; a softmax is over the last dimension.
poplar::Tensor nonLinearity(poplar::Graph &graph, NonLinearityType type, poplar::Tensor t, poplar::program::Sequence &prog,
                            const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void nonLinearityInPlace(poplar::Graph &graph, NonLinearityType type, poplar::Tensor t, poplar::program::Sequence &prog,
                         const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// `out` is the output of the non-linearity (for GELU and SWISH, its input).
poplar::Tensor nonLinearityInputGradient(poplar::Graph &graph, NonLinearityType type, poplar::Tensor out, poplar::Tensor outGradient,
                                         poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                         const poplar::OptionFlags &options = {});
/// As above, with the vertices added to a compute set; not for a softmax.
void nonLinearityInPlace(poplar::Graph &graph, NonLinearityType type, poplar::Tensor t, poplar::ComputeSet &computeSet,
                         const poplar::DebugContext &context = {});
poplar::Tensor nonLinearityInputGradient(poplar::Graph &graph, NonLinearityType type, poplar::Tensor out, poplar::Tensor outGradient,
                                         poplar::ComputeSet &computeSet, const poplar::DebugContext &context = {});
/// `scaling` becomes the factor of the output; the emulator scales none.
inline poplar::Tensor nonLinearity(poplar::Graph &graph, NonLinearityType type, poplar::Tensor t, float &scaling,
                                   poplar::program::Sequence &prog, const poplar::DebugContext &context = {}) {
  scaling = 1;
  return nonLinearity(graph, type, t, prog, context);
}
inline void nonLinearityInPlace(poplar::Graph &graph, NonLinearityType type, poplar::Tensor t, float &scaling,
                                poplar::program::Sequence &prog, const poplar::DebugContext &context = {}) {
  scaling = 1;
  nonLinearityInPlace(graph, type, t, prog, context);
}
#define SNNC_POPNN_SHORT(name, TYPE)                                                                                             \
  inline poplar::Tensor name(poplar::Graph &graph, poplar::Tensor t, poplar::program::Sequence &prog,                            \
                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {                \
    return nonLinearity(graph, NonLinearityType::TYPE, t, prog, context, options);                                               \
  }                                                                                                                              \
  inline void name##InPlace(poplar::Graph &graph, poplar::Tensor t, poplar::program::Sequence &prog,                             \
                            const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {                 \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, prog, context, options);                                               \
  }                                                                                                                              \
  inline poplar::Tensor name(poplar::Graph &graph, poplar::Tensor t, float &scaling, poplar::program::Sequence &prog,            \
                             const poplar::DebugContext &context = {}) {                                                         \
    return nonLinearity(graph, NonLinearityType::TYPE, t, scaling, prog, context);                                               \
  }                                                                                                                              \
  inline void name##InPlace(poplar::Graph &graph, poplar::Tensor t, float &scaling, poplar::program::Sequence &prog,             \
                            const poplar::DebugContext &context = {}) {                                                          \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, scaling, prog, context);                                               \
  }
SNNC_POPNN_SHORT(sigmoid, SIGMOID)
SNNC_POPNN_SHORT(relu, RELU)
SNNC_POPNN_SHORT(tanh, TANH)
SNNC_POPNN_SHORT(gelu, GELU)
SNNC_POPNN_SHORT(geluErf, GELU_ERF)
SNNC_POPNN_SHORT(swish, SWISH)
SNNC_POPNN_SHORT(softmax, SOFTMAX)
SNNC_POPNN_SHORT(scaledSoftmaxStable, SOFTMAX_SCALED)
SNNC_POPNN_SHORT(softmaxStable, SOFTMAX_STABLE)
#undef SNNC_POPNN_SHORT
} // namespace popnn
#endif
