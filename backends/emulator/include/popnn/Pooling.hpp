// Pooling over the field of [batch, channels, field...].
#ifndef SNNC_POPNN_POOLING_HPP
#define SNNC_POPNN_POOLING_HPP

#include <cstdint>
#include <ostream>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popnn/PoolingDef.hpp>

namespace popnn {
namespace pooling {

struct PoolParams {
  PoolingType poolingType;
  std::vector<std::size_t> inputFieldShape, kernelShape;
  std::vector<unsigned> stride;
  /// Padding at both ends of each dimension; negative numbers cut elements off.
  std::vector<int> inputTruncationOrPaddingLower, inputTruncationOrPaddingUpper;
  std::size_t numChannels, batchSize;
  poplar::Type dType;

  PoolParams(PoolingType type, std::vector<std::size_t> field, std::vector<std::size_t> kernel, std::vector<unsigned> every,
             std::vector<int> lower, std::vector<int> upper, std::size_t channels, std::size_t batch, poplar::Type dataType)
      : poolingType(type), inputFieldShape(std::move(field)), kernelShape(std::move(kernel)), stride(std::move(every)),
        inputTruncationOrPaddingLower(std::move(lower)), inputTruncationOrPaddingUpper(std::move(upper)), numChannels(channels),
        batchSize(batch), dType(dataType) {}
  std::size_t getNumFieldDims() const { return inputFieldShape.size(); }
  std::vector<std::size_t> getOutputFieldShape() const;
};

const char *asString(const PoolingType &method);
std::ostream &operator<<(std::ostream &stream, const PoolParams &params);
inline std::vector<std::size_t> getOutputFieldShape(const PoolParams &params) { return params.getOutputFieldShape(); }
std::uint64_t getFwdFlops(const PoolParams &params);
std::uint64_t getBwdFlops(const PoolParams &params);

/// An average excludes padding. If the kernel covers only padding, the result is 0.
poplar::Tensor pool(poplar::Graph &graph, const PoolParams &params, const poplar::Tensor &in, poplar::program::Sequence &prog,
                    const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// The gradient of the input. For a maximum, every element equal to it gets the gradient, or its share with `useScaledGradient`.
poplar::Tensor poolInputGradient(poplar::Graph &graph, const PoolParams &params, const poplar::Tensor &in, const poplar::Tensor &pooled,
                                 const poplar::Tensor &pooledGradient, bool useScaledGradient, poplar::program::Sequence &prog,
                                 const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// For sums and averages, which need no input.
poplar::Tensor poolInputGradient(poplar::Graph &graph, const PoolParams &params, unsigned fwdChansPerGroup,
                                 const poplar::Tensor &pooledGradient, poplar::program::Sequence &prog,
                                 const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

} // namespace pooling
} // namespace popnn

#endif
