// popnn: regions of images, resampled. The interpolation is separable, so a region is a product of three matrices.
#include <popnn/experimental/ROIAlign.hpp>

#include <poplin/MatMul.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "builtin.hpp"

namespace popnn::experimental {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::FLOAT;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

namespace {

Tensor constant(Graph &graph, const Shape &shape, const std::vector<float> &values, const std::string &name) {
  const Tensor t = graph.addConstant<float>(FLOAT, shape, values, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// How regions are sampled along one dimension.
struct Axis {
  /// Columns of the corners.
  std::size_t from, to;
  std::size_t parts, extent;
};

/// [regions, parts, extent]: the weight of each pixel, along one dimension, in the mean of a part's samples.
Tensor weights(Graph &graph, const Tensor &corners, const Axis &axis, const roiAlignParams &p, Sequence &prog, const std::string &name) {
  const std::size_t samples = p.samplingRatio_, regions = corners.dim(0);
  std::vector<float> fractions, pixels(axis.extent);
  for (std::size_t i = 0; i < axis.parts * samples; ++i)
    fractions.push_back((float(i / samples) + (float(i % samples) + 0.5f) / float(samples)) / float(axis.parts));
  for (std::size_t i = 0; i < axis.extent; ++i)
    pixels[i] = float(i);
  const Tensor fraction = constant(graph, {1, axis.parts, samples, 1}, fractions, name + "/fractions");
  const Tensor pixel = constant(graph, {1, 1, 1, axis.extent}, pixels, name + "/pixels");
  const Tensor from = corners.slice(axis.from, axis.from + 1, 1).reshape({regions, 1, 1, 1});
  const Tensor to = corners.slice(axis.to, axis.to + 1, 1).reshape({regions, 1, 1, 1});
  const Any begin = Sub(Mul(_1, Const(p.spatialScale_)), Const(p.aligned_ ? 0.5f : 0.f));
  const Any size = Max(Mul(Sub(_2, _1), Const(p.spatialScale_)), Const(p.aligned_ ? 0.f : 1.f));
  const Tensor places = popops::map(graph, Add(begin, Mul(size, _3)), {from, to, fraction}, prog, name + "/places");
  // A sample more than one pixel outside is zero; nearer ones are moved to the edge.
  const float last = float(axis.extent) - 1;
  const Any inside = And(Gte(_1, Const(-1.f)), Lte(_1, Const(last + 1))), moved = Min(Max(_1, Const(0.f)), Const(last));
  const Any tent = Max(Sub(Const(1.f), Abs(Sub(moved, _2))), Const(0.f));
  const Tensor each = popops::map(graph, Select(Mul(tent, Const(1.f / float(samples))), Const(0.f), inside), {places, pixel}, prog, name + "/tents");
  return popops::reduce(graph, each, FLOAT, {2}, popops::Operation::ADD, prog, name);
}

/// What both directions need: the weights along both dimensions, and each region's image.
struct Regions {
  Tensor rows, columns, images;
};

Regions regionsOf(Graph &graph, const Tensor &data, const Tensor &rois, const Tensor &images, const roiAlignParams &p, Sequence &prog,
                  const std::string &name) {
  for (const char *library : {"popnn", "popops", "poplin"})
    requireLibrary(graph, library);
  if (p.samplingRatio_ == 0 || p.alignedHeight_ == 0 || p.alignedWidth_ == 0)
    throw poputil::poplibs_error(name + ": samplingRatio, alignedHeight and alignedWidth must be greater than 0");
  if (data.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4 || images.shape() != Shape{rois.dim(0)})
    throw poputil::poplibs_error(name + ": images of shape " + data.shapeToString() + ", regions of shape " + rois.shapeToString() +
                                 " and their images of shape " + images.shapeToString() +
                                 "; expected {images,channels,height,width}, {regions,4} and {regions}");
  const Tensor corners = popops::cast(graph, rois, FLOAT, prog, name);
  return {weights(graph, corners, {1, 3, p.alignedHeight_, data.dim(2)}, p, prog, name + "/rows"),
          weights(graph, corners, {0, 2, p.alignedWidth_, data.dim(3)}, p, prog, name + "/columns"),
          popops::cast(graph, images, poplar::UNSIGNED_INT, prog, name).expand({1})};
}

Tensor product(Graph &graph, const Tensor &a, const Tensor &b, Sequence &prog, const std::string &name) {
  return poplin::matMulGrouped(graph, a, b, prog, FLOAT, name);
}

} // namespace

Tensor roiAlignFwd(Graph &graph, Sequence &prog, const Tensor &data, const Tensor &rois, const Tensor &images, const roiAlignParams &params,
                   const DebugContext &context) {
  const std::string name = contextName(context, "roiAlign");
  const Regions r = regionsOf(graph, data, rois, images, params, prog, name);
  const std::size_t n = rois.dim(0), channels = data.dim(1), height = data.dim(2), width = data.dim(3);
  const Tensor table = popops::cast(graph, data.reshape({data.dim(0), channels * height * width}), FLOAT, prog, name);
  const Tensor own = popops::multiSlice(graph, table, r.images, {0}, {1}, prog, name);
  const Tensor across = product(graph, own.reshape({n, channels * height, width}), r.columns.dimShuffle({0, 2, 1}), prog, name);
  const Tensor lines = across.reshape({n, channels, height, params.alignedWidth_}).dimShuffle({0, 2, 1, 3});
  const Tensor out = product(graph, r.rows, lines.reshape({n, height, channels * params.alignedWidth_}), prog, name);
  const Tensor result = out.reshape({n, params.alignedHeight_, channels, params.alignedWidth_}).dimShuffle({0, 2, 1, 3});
  return popops::cast(graph, result, data.elementType(), prog, name);
}

Tensor roiAlignInputGradient(Graph &graph, Sequence &prog, const Tensor &data, const Tensor &rois, const Tensor &images,
                             const Tensor &topDataGrad, const roiAlignParams &params, const DebugContext &context) {
  const std::string name = contextName(context, "roiAlignGradient");
  const Regions r = regionsOf(graph, data, rois, images, params, prog, name);
  const std::size_t n = rois.dim(0), channels = data.dim(1), height = data.dim(2), width = data.dim(3);
  if (topDataGrad.shape() != Shape{n, channels, params.alignedHeight_, params.alignedWidth_})
    throw poputil::poplibs_error(name + ": gradients of shape " + topDataGrad.shapeToString() + " for " + std::to_string(n) + " regions of " +
                                 std::to_string(channels) + " channels");
  const Tensor gradient = popops::cast(graph, topDataGrad, FLOAT, prog, name).dimShuffle({0, 2, 1, 3});
  const Tensor flat = gradient.reshape({n, params.alignedHeight_, channels * params.alignedWidth_});
  const Tensor lines = product(graph, r.rows.dimShuffle({0, 2, 1}), flat, prog, name);
  const Tensor whole = product(graph, lines.reshape({n, height * channels, params.alignedWidth_}), r.columns, prog, name);
  const Tensor updates = whole.reshape({n, height, channels, width}).dimShuffle({0, 2, 1, 3}).reshape({n, 1, channels * height * width});
  const Tensor table = popops::createSliceableTensor(graph, FLOAT, {data.dim(0), channels * height * width}, {0}, {1}, 0, name + "/sum");
  popops::zero(graph, table, prog, name);
  popops::multiUpdateAdd(graph, table, updates, r.images, constant(graph, {}, {1.f}, name + "/one"), {0}, {1}, prog, name);
  return popops::cast(graph, table.reshape(data.shape()), data.elementType(), prog, name);
}

} // namespace popnn::experimental
