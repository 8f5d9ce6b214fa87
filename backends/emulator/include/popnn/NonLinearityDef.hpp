// The kinds of activation functions.
#ifndef SNNC_POPNN_NON_LINEARITY_DEF_HPP
#define SNNC_POPNN_NON_LINEARITY_DEF_HPP
namespace popnn {
enum class NonLinearityType { SIGMOID, HARD_SIGMOID, RELU, TANH, GELU, SWISH, SOFTMAX, SOFTMAX_STABLE, SOFTMAX_SCALED, GELU_ERF };
}
#endif
