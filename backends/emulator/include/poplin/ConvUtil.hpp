// Which elements of input, kernel and output of a convolution meet, and the convolutions of its gradients.
#ifndef SNNC_POPLIN_CONV_UTIL_HPP
#define SNNC_POPLIN_CONV_UTIL_HPP
#include <utility>
#include <poplin/ConvParams.hpp>
namespace poplin {
/// A first index and the one after the last; {0, 0} contains none.
using IndexRange = std::pair<unsigned, unsigned>;

unsigned getDilatedSize(unsigned size, unsigned dilation);
/// The element of the input that is multiplied by an element of the kernel for an element of the output; ~0u if there is none.
unsigned getInputIndex(unsigned dim, unsigned outputIndex, unsigned kernelIndex, const ConvParams &params);
unsigned getKernelIndex(unsigned dim, unsigned outputIndex, unsigned inputIndex, const ConvParams &params);

/// The part of a range of outputs to which an element, or a range of elements, of the kernel or of the input contributes.
IndexRange getOutputRangeForKernelIndex(unsigned dim, IndexRange outputRange, unsigned kernelIndex, const ConvParams &params);
IndexRange getOutputRangeForInputIndex(unsigned dim, IndexRange outputRange, unsigned inputIndex, const ConvParams &params);
IndexRange getOutputRangeForKernelRange(unsigned dim, IndexRange outputRange, IndexRange kernelIndexRange, const ConvParams &params);
IndexRange getOutputRangeForInputRange(unsigned dim, IndexRange outputRange, IndexRange inputRange, const ConvParams &params);

/// The inputs that are multiplied by elements of the kernel for a range of outputs.
IndexRange getInputRange(unsigned dim, IndexRange outputRange, IndexRange kernelIndexRange, const ConvParams &params);
IndexRange getInputRange(unsigned dim, IndexRange outputRange, unsigned kernelIndex, const ConvParams &params);
IndexRange getInputRange(unsigned dim, IndexRange outputRange, const ConvParams &params);
IndexRange getInputRange(unsigned dim, unsigned outputIndex, IndexRange kernelIndexRange, const ConvParams &params);
IndexRange getInputRange(unsigned dim, unsigned outputIndex, const ConvParams &params);
/// The elements of the kernel that are multiplied by inputs for a range of outputs.
IndexRange getKernelRange(unsigned dim, IndexRange outputRange, IndexRange inputRange, const ConvParams &params);
IndexRange getKernelRange(unsigned dim, IndexRange outputRange, unsigned inputIndex, const ConvParams &params);

/// The convolution that computes the gradient of the input from that of the output: the kernel's channels are exchanged, its field reversed.
ConvParams getGradientParams(const ConvParams &params);
/// The convolution that computes the gradient of the kernel: samples and channels of the input are exchanged, and its kernel is the gradient
/// of the output.
ConvParams getWeightUpdateParams(const ConvParams &params);
} // namespace poplin
#endif
