#ifndef SNNC_POPNN_NON_LINEARITY_HPP
#define SNNC_POPNN_NON_LINEARITY_HPP
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popnn/NonLinearityDef.hpp>
namespace popnn {
/// A softmax is over the last dimension.
poplar::Tensor nonLinearity(poplar::Graph &graph, NonLinearityType type, poplar::Tensor t, poplar::program::Sequence &prog,
                            const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void nonLinearityInPlace(poplar::Graph &graph, NonLinearityType type, poplar::Tensor t, poplar::program::Sequence &prog,
                         const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// `out` is the output of the non-linearity (for GELU and SWISH, its input).
poplar::Tensor nonLinearityInputGradient(poplar::Graph &graph, NonLinearityType type, poplar::Tensor out, poplar::Tensor outGradient,
                                         poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                         const poplar::OptionFlags &options = {});
#define SNNC_POPNN_SHORT(name, TYPE)                                                                                             \
  inline poplar::Tensor name(poplar::Graph &graph, poplar::Tensor t, poplar::program::Sequence &prog,                            \
                             const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {                \
    return nonLinearity(graph, NonLinearityType::TYPE, t, prog, context, options);                                               \
  }                                                                                                                              \
  inline void name##InPlace(poplar::Graph &graph, poplar::Tensor t, poplar::program::Sequence &prog,                             \
                            const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {                 \
    nonLinearityInPlace(graph, NonLinearityType::TYPE, t, prog, context, options);                                               \
  }
SNNC_POPNN_SHORT(sigmoid, SIGMOID)
SNNC_POPNN_SHORT(relu, RELU)
SNNC_POPNN_SHORT(tanh, TANH)
SNNC_POPNN_SHORT(gelu, GELU)
SNNC_POPNN_SHORT(softmax, SOFTMAX)
SNNC_POPNN_SHORT(softmaxStable, SOFTMAX_STABLE)
#undef SNNC_POPNN_SHORT
} // namespace popnn
#endif
