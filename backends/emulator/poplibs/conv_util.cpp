// poplin: indices and gradients of convolutions with any transformation of input, kernel and output.
#include <poplin/ConvUtil.hpp>

#include <algorithm>

#include <poputil/exceptions.hpp>

namespace poplin {

namespace {

constexpr unsigned none = ~0u;

/// Place of an element after a transformation; none if it is truncated.
unsigned transformed(unsigned index, std::size_t size, std::size_t newSize, const ConvParams::InputTransform &t, unsigned dim) {
  if (index < t.truncationLower[dim] || index + t.truncationUpper[dim] >= size)
    return none;
  const unsigned at = t.paddingLower[dim] + (index - t.truncationLower[dim]) * t.dilation[dim];
  return t.flip[dim] ? unsigned(newSize) - 1 - at : at;
}

/// The inverse; none for a zero that the transformation has added.
unsigned original(unsigned at, std::size_t size, std::size_t newSize, const ConvParams::InputTransform &t, unsigned dim) {
  if (at >= newSize)
    return none;
  at = t.flip[dim] ? unsigned(newSize) - 1 - at : at;
  const std::size_t cut = t.truncationLower[dim] + t.truncationUpper[dim], left = size < cut ? 0 : size - cut;
  if (at < t.paddingLower[dim] || (at - t.paddingLower[dim]) % t.dilation[dim])
    return none;
  const unsigned index = (at - t.paddingLower[dim]) / t.dilation[dim];
  return index < left ? index + t.truncationLower[dim] : none;
}

/// Place of an output in the result before truncation and stride; none for padding.
unsigned untransformed(unsigned output, const ConvParams &p, unsigned dim) {
  const ConvParams::OutputTransform &o = p.outputTransform;
  if (output < o.paddingLower[dim] || output + o.paddingUpper[dim] >= p.getOutputSize(dim))
    return none;
  return (output - o.paddingLower[dim]) * o.stride[dim] + o.truncationLower[dim];
}

/// The smallest range that contains all added indices.
struct Hull {
  IndexRange range{0, 0};
  void add(unsigned index) {
    if (range.first == range.second)
      range = {index, index + 1};
    else
      range = {std::min(range.first, index), std::max(range.second, index + 1)};
  }
};

bool within(unsigned index, IndexRange range) { return index >= range.first && index < range.second; }

/// f(output, kernel element, input) for everything that meets.
template <class F> void forEachMeeting(unsigned dim, IndexRange outputs, IndexRange kernel, const ConvParams &p, F &&f) {
  for (unsigned out = outputs.first; out < outputs.second; ++out)
    for (unsigned k = kernel.first; k < kernel.second; ++k) {
      const unsigned in = getInputIndex(dim, out, k, p);
      if (in != none)
        f(out, k, in);
    }
}

IndexRange wholeKernel(unsigned dim, const ConvParams &p) { return {0, unsigned(p.kernelShape[dim])}; }

/// Outputs that the stride leaves out at the end.
unsigned leftOver(const ConvParams &p, unsigned dim) {
  const ConvParams::OutputTransform &o = p.outputTransform;
  const std::size_t all = p.getUntransformedOutputSize(dim), cut = o.truncationLower[dim] + o.truncationUpper[dim];
  if (all <= cut)
    throw poputil::poplibs_error("dimension " + std::to_string(dim) + " of the convolution has no output");
  return unsigned((all - cut - 1) % o.stride[dim]);
}

/// The gradient of the output as it was before its transformation, with `margin` zeros more at both ends.
void undoOutputTransform(ConvParams::InputTransform &t, const ConvParams &p, unsigned dim, unsigned margin) {
  const ConvParams::OutputTransform &o = p.outputTransform;
  t.truncationLower[dim] = o.paddingLower[dim];
  t.truncationUpper[dim] = o.paddingUpper[dim];
  t.dilation[dim] = o.stride[dim];
  t.paddingLower[dim] = o.truncationLower[dim] + margin;
  t.paddingUpper[dim] = o.truncationUpper[dim] + leftOver(p, dim) + margin;
}

/// The gradient of what `t` transforms, from that of its result.
void undoInputTransform(ConvParams::OutputTransform &o, const ConvParams::InputTransform &t, unsigned dim) {
  o.truncationLower[dim] = t.paddingLower[dim];
  o.truncationUpper[dim] = t.paddingUpper[dim];
  o.stride[dim] = t.dilation[dim];
  o.paddingLower[dim] = t.truncationLower[dim];
  o.paddingUpper[dim] = t.truncationUpper[dim];
}

} // namespace

unsigned getDilatedSize(unsigned size, unsigned dilation) { return size == 0 ? 0 : (size - 1) * dilation + 1; }

unsigned getInputIndex(unsigned dim, unsigned outputIndex, unsigned kernelIndex, const ConvParams &p) {
  const unsigned result = untransformed(outputIndex, p, dim);
  const unsigned tap = transformed(kernelIndex, p.kernelShape[dim], p.getTransformedKernelSize(dim), p.kernelTransform, dim);
  if (result == none || tap == none)
    return none;
  return original(result + tap, p.inputFieldShape[dim], p.getTransformedInputSize(dim), p.inputTransform, dim);
}

unsigned getKernelIndex(unsigned dim, unsigned outputIndex, unsigned inputIndex, const ConvParams &p) {
  for (unsigned k = 0; k < p.kernelShape[dim]; ++k)
    if (getInputIndex(dim, outputIndex, k, p) == inputIndex)
      return k;
  return none;
}

IndexRange getOutputRangeForKernelRange(unsigned dim, IndexRange outputRange, IndexRange kernelIndexRange, const ConvParams &params) {
  Hull hull;
  forEachMeeting(dim, outputRange, kernelIndexRange, params, [&](unsigned out, unsigned, unsigned) { hull.add(out); });
  return hull.range;
}
IndexRange getOutputRangeForKernelIndex(unsigned dim, IndexRange outputRange, unsigned kernelIndex, const ConvParams &params) {
  return getOutputRangeForKernelRange(dim, outputRange, {kernelIndex, kernelIndex + 1}, params);
}

IndexRange getOutputRangeForInputRange(unsigned dim, IndexRange outputRange, IndexRange inputRange, const ConvParams &params) {
  Hull hull;
  forEachMeeting(dim, outputRange, wholeKernel(dim, params), params, [&](unsigned out, unsigned, unsigned in) {
    if (within(in, inputRange))
      hull.add(out);
  });
  return hull.range;
}
IndexRange getOutputRangeForInputIndex(unsigned dim, IndexRange outputRange, unsigned inputIndex, const ConvParams &params) {
  return getOutputRangeForInputRange(dim, outputRange, {inputIndex, inputIndex + 1}, params);
}

IndexRange getInputRange(unsigned dim, IndexRange outputRange, IndexRange kernelIndexRange, const ConvParams &params) {
  Hull hull;
  forEachMeeting(dim, outputRange, kernelIndexRange, params, [&](unsigned, unsigned, unsigned in) { hull.add(in); });
  return hull.range;
}
IndexRange getInputRange(unsigned dim, IndexRange outputRange, unsigned kernelIndex, const ConvParams &params) {
  return getInputRange(dim, outputRange, IndexRange{kernelIndex, kernelIndex + 1}, params);
}
IndexRange getInputRange(unsigned dim, IndexRange outputRange, const ConvParams &params) {
  return getInputRange(dim, outputRange, wholeKernel(dim, params), params);
}
IndexRange getInputRange(unsigned dim, unsigned outputIndex, IndexRange kernelIndexRange, const ConvParams &params) {
  return getInputRange(dim, IndexRange{outputIndex, outputIndex + 1}, kernelIndexRange, params);
}
IndexRange getInputRange(unsigned dim, unsigned outputIndex, const ConvParams &params) {
  return getInputRange(dim, IndexRange{outputIndex, outputIndex + 1}, wholeKernel(dim, params), params);
}

IndexRange getKernelRange(unsigned dim, IndexRange outputRange, IndexRange inputRange, const ConvParams &params) {
  Hull hull;
  forEachMeeting(dim, outputRange, wholeKernel(dim, params), params, [&](unsigned, unsigned k, unsigned in) {
    if (within(in, inputRange))
      hull.add(k);
  });
  return hull.range;
}
IndexRange getKernelRange(unsigned dim, IndexRange outputRange, unsigned inputIndex, const ConvParams &params) {
  return getKernelRange(dim, outputRange, IndexRange{inputIndex, inputIndex + 1}, params);
}

ConvParams getGradientParams(const ConvParams &p) {
  ConvParams g(p.inputType, p.outputType, p.batchSize, p.getOutputFieldShape(), p.kernelShape, p.outputChannelsPerConvGroup,
               p.inputChannelsPerConvGroup, p.numConvGroups);
  const ConvParams::InputTransform &k = p.kernelTransform;
  for (unsigned dim = 0; dim < p.getNumFieldDims(); ++dim) {
    undoOutputTransform(g.inputTransform, p, dim, unsigned(p.getTransformedKernelSize(dim)) - 1);
    // The kernel's field is given in reverse, and so are its ends.
    g.kernelTransform.truncationLower[dim] = k.truncationUpper[dim];
    g.kernelTransform.truncationUpper[dim] = k.truncationLower[dim];
    g.kernelTransform.dilation[dim] = k.dilation[dim];
    g.kernelTransform.paddingLower[dim] = k.paddingUpper[dim];
    g.kernelTransform.paddingUpper[dim] = k.paddingLower[dim];
    // Two reversed operands give a reversed result: the input as it was before its reversal.
    g.inputTransform.flip[dim] = p.inputTransform.flip[dim];
    g.kernelTransform.flip[dim] = k.flip[dim] != p.inputTransform.flip[dim];
    undoInputTransform(g.outputTransform, p.inputTransform, dim);
  }
  return g;
}

ConvParams getWeightUpdateParams(const ConvParams &p) {
  ConvParams w(p.inputType, p.outputType, p.inputChannelsPerConvGroup, p.inputFieldShape, p.getOutputFieldShape(), p.batchSize,
               p.outputChannelsPerConvGroup, p.numConvGroups);
  w.inputTransform = p.inputTransform;
  for (unsigned dim = 0; dim < p.getNumFieldDims(); ++dim) {
    undoOutputTransform(w.kernelTransform, p, dim, 0);
    w.kernelTransform.flip[dim] = p.kernelTransform.flip[dim];
    w.inputTransform.flip[dim] = p.inputTransform.flip[dim] != p.kernelTransform.flip[dim];
    undoInputTransform(w.outputTransform, p.kernelTransform, dim);
  }
  return w;
}

} // namespace poplin
