// Images of three channels, scaled by channel.
#ifndef SNNC_POPOPS_NORMALISE_IMAGE_HPP
#define SNNC_POPOPS_NORMALISE_IMAGE_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// UNSIGNED_CHAR, HALF or FLOAT; the last dimension has three elements, the channels of a pixel.
poplar::Tensor createNormaliseImageInput(poplar::Graph &graph, const poplar::Type &type, poplar::ArrayRef<std::size_t> shape,
                                         const poplar::DebugContext &context = {});
/// (in * inScale - offsets) * scales for each channel, with a fourth channel of zeros; UNSIGNED_CHAR becomes HALF.
poplar::Tensor normaliseImage(poplar::Graph &graph, poplar::program::Sequence &prog, poplar::Tensor in, float inScale, poplar::Tensor offsets,
                              poplar::Tensor scales, const poplar::DebugContext &context = {});
} // namespace popops
#endif
