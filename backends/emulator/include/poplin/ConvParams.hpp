// Parameters of a convolution.
#ifndef SNNC_POPLIN_CONV_PARAMS_HPP
#define SNNC_POPLIN_CONV_PARAMS_HPP

#include <cstddef>
#include <vector>

#include <poplar/Type.hpp>

namespace poplin {

struct ConvParams {
  /// For each dimension of a field: truncation at both ends, zeros between elements, zero padding at both ends, then reversal.
  struct InputTransform {
    std::vector<unsigned> truncationLower, truncationUpper, dilation, paddingLower, paddingUpper;
    std::vector<bool> flip;
    InputTransform() = default;
    explicit InputTransform(std::size_t dimensions)
        : truncationLower(dimensions), truncationUpper(dimensions), dilation(dimensions, 1), paddingLower(dimensions), paddingUpper(dimensions),
          flip(dimensions) {}
    InputTransform(std::vector<unsigned> cutLower, std::vector<unsigned> cutUpper, std::vector<unsigned> between, std::vector<unsigned> padLower,
                   std::vector<unsigned> padUpper, std::vector<bool> turned)
        : truncationLower(cutLower), truncationUpper(cutUpper), dilation(between), paddingLower(padLower), paddingUpper(padUpper), flip(turned) {}
  };
  /// For each dimension of the result: truncation at both ends, a stride, zero padding at both ends.
  struct OutputTransform {
    std::vector<unsigned> truncationLower, truncationUpper, stride, paddingLower, paddingUpper;
    OutputTransform() = default;
    explicit OutputTransform(std::size_t dimensions)
        : truncationLower(dimensions), truncationUpper(dimensions), stride(dimensions, 1), paddingLower(dimensions), paddingUpper(dimensions) {}
    OutputTransform(std::vector<unsigned> cutLower, std::vector<unsigned> cutUpper, std::vector<unsigned> every, std::vector<unsigned> padLower,
                    std::vector<unsigned> padUpper)
        : truncationLower(cutLower), truncationUpper(cutUpper), stride(every), paddingLower(padLower), paddingUpper(padUpper) {}
  };

  ConvParams() = default;
  ConvParams(poplar::Type dataType, std::size_t batch, std::vector<std::size_t> fieldShape, std::vector<std::size_t> kernel,
             std::size_t inputChannels, std::size_t outputChannels, std::size_t groups)
      : ConvParams(dataType, dataType, batch, fieldShape, kernel, inputChannels, outputChannels, groups) {}
  ConvParams(poplar::Type in, poplar::Type out, std::size_t batch, std::vector<std::size_t> fieldShape, std::vector<std::size_t> kernel,
             std::size_t inputChannels, std::size_t outputChannels, std::size_t groups)
      : ConvParams(in, out, batch, fieldShape, kernel, inputChannels, outputChannels, groups, InputTransform(fieldShape.size()),
                   InputTransform(fieldShape.size()), OutputTransform(fieldShape.size())) {}
  ConvParams(poplar::Type in, poplar::Type out, std::size_t batch, std::vector<std::size_t> fieldShape, std::vector<std::size_t> kernel,
             std::size_t inputChannels, std::size_t outputChannels, std::size_t groups, InputTransform ofInput, InputTransform ofKernel,
             OutputTransform ofOutput)
      : inputType(in), outputType(out), batchSize(batch), inputFieldShape(fieldShape), kernelShape(kernel),
        inputChannelsPerConvGroup(inputChannels), outputChannelsPerConvGroup(outputChannels), numConvGroups(groups), inputTransform(ofInput),
        kernelTransform(ofKernel), outputTransform(ofOutput) {}

  std::size_t getTransformedInputSize(unsigned dim) const { return transformed(inputFieldShape[dim], inputTransform, dim); }
  std::size_t getTransformedKernelSize(unsigned dim) const { return transformed(kernelShape[dim], kernelTransform, dim); }
  std::size_t getTruncatedInputSize(unsigned dim) const {
    return inputFieldShape[dim] - inputTransform.truncationLower[dim] - inputTransform.truncationUpper[dim];
  }
  std::size_t getTruncatedKernelSize(unsigned dim) const {
    return kernelShape[dim] - kernelTransform.truncationLower[dim] - kernelTransform.truncationUpper[dim];
  }
  std::size_t getInputSize(unsigned dim) const { return inputFieldShape[dim]; }
  std::size_t getUntransformedOutputSize(unsigned dim) const {
    const std::size_t in = getTransformedInputSize(dim), kernel = getTransformedKernelSize(dim);
    return in < kernel ? 0 : in - kernel + 1;
  }
  std::size_t getOutputSize(unsigned dim) const {
    const OutputTransform &t = outputTransform;
    const std::size_t cut = t.truncationLower[dim] + t.truncationUpper[dim], all = getUntransformedOutputSize(dim);
    return (all < cut ? 0 : (all - cut + t.stride[dim] - 1) / t.stride[dim]) + t.paddingLower[dim] + t.paddingUpper[dim];
  }
  std::size_t getNumFieldDims() const { return inputFieldShape.size(); }
  std::vector<std::size_t> getOutputFieldShape() const {
    std::vector<std::size_t> shape;
    for (unsigned dim = 0; dim < getNumFieldDims(); ++dim)
      shape.push_back(getOutputSize(dim));
    return shape;
  }
  std::vector<std::size_t> getInputFieldShape() const { return inputFieldShape; }
  std::vector<std::size_t> getKernelShape() const { return kernelShape; }
  std::size_t getNumConvGroups() const { return numConvGroups; }
  std::size_t getNumInputChansPerConvGroup() const { return inputChannelsPerConvGroup; }
  std::size_t getNumOutputChansPerConvGroup() const { return outputChannelsPerConvGroup; }
  std::size_t getNumInputChans() const { return inputChannelsPerConvGroup * numConvGroups; }
  std::size_t getNumOutputChans() const { return outputChannelsPerConvGroup * numConvGroups; }
  std::size_t getBatchSize() const { return batchSize; }

  friend bool operator<(const ConvParams &a, const ConvParams &b) { return a.numbers() < b.numbers(); }
  friend bool operator==(const ConvParams &a, const ConvParams &b) { return a.numbers() == b.numbers(); }
  friend bool operator!=(const ConvParams &a, const ConvParams &b) { return !(a == b); }

  poplar::Type inputType, outputType;
  std::size_t batchSize = 0;
  std::vector<std::size_t> inputFieldShape, kernelShape;
  std::size_t inputChannelsPerConvGroup = 0, outputChannelsPerConvGroup = 0, numConvGroups = 0;
  InputTransform inputTransform, kernelTransform;
  OutputTransform outputTransform;

private:
  /// All parameters as numbers, for comparisons.
  std::vector<std::size_t> numbers() const {
    std::vector<std::size_t> all{std::size_t(inputType.id()), std::size_t(outputType.id()), batchSize, inputChannelsPerConvGroup,
                                 outputChannelsPerConvGroup, numConvGroups, inputFieldShape.size()};
    all.insert(all.end(), inputFieldShape.begin(), inputFieldShape.end());
    all.insert(all.end(), kernelShape.begin(), kernelShape.end());
    for (const InputTransform *t : {&inputTransform, &kernelTransform}) {
      for (const std::vector<unsigned> *list : {&t->truncationLower, &t->truncationUpper, &t->dilation, &t->paddingLower, &t->paddingUpper})
        all.insert(all.end(), list->begin(), list->end());
      all.insert(all.end(), t->flip.begin(), t->flip.end());
    }
    const OutputTransform &o = outputTransform;
    for (const std::vector<unsigned> *list : {&o.truncationLower, &o.truncationUpper, &o.stride, &o.paddingLower, &o.paddingUpper})
      all.insert(all.end(), list->begin(), list->end());
    return all;
  }
  static std::size_t transformed(std::size_t size, const InputTransform &t, unsigned dim) {
    const std::size_t cut = t.truncationLower[dim] + t.truncationUpper[dim], left = size < cut ? 0 : size - cut;
    return (left ? (left - 1) * t.dilation[dim] + 1 : 0) + t.paddingLower[dim] + t.paddingUpper[dim];
  }
};

} // namespace poplin

#endif
