// poplin: convolutions as matrix products whose operands are views.
#include <poplin/Convolution.hpp>

#include <popops/ElementWise.hpp>
#include <popops/Pad.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "builtin.hpp"

namespace poplin {

using namespace poplibs;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

namespace {

Shape joined(Shape first, const Shape &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void requireShape(const Tensor &t, const Shape &shape, const std::string &what) {
  if (t.shape() != shape)
    throw poputil::poplibs_error(what + ": a tensor of shape " + t.shapeToString() + " does not fit the convolution's parameters");
}

void requireParams(const ConvParams &p, const std::string &what) {
  const std::size_t n = p.getNumFieldDims();
  const auto fits = [&](const ConvParams::InputTransform &t) {
    return t.truncationLower.size() == n && t.truncationUpper.size() == n && t.dilation.size() == n && t.paddingLower.size() == n &&
           t.paddingUpper.size() == n && t.flip.size() == n;
  };
  const ConvParams::OutputTransform &o = p.outputTransform;
  if (p.kernelShape.size() != n || !fits(p.inputTransform) || !fits(p.kernelTransform) || o.truncationLower.size() != n ||
      o.truncationUpper.size() != n || o.stride.size() != n || o.paddingLower.size() != n || o.paddingUpper.size() != n)
    throw poputil::poplibs_error(what + ": parameters of fields of different numbers of dimensions");
  for (unsigned dim = 0; dim < n; ++dim)
    if (p.inputTransform.dilation[dim] == 0 || p.kernelTransform.dilation[dim] == 0 || o.stride[dim] == 0 || p.getUntransformedOutputSize(dim) == 0)
      throw poputil::poplibs_error(what + ": dimension " + std::to_string(dim) + " of the field is smaller than the kernel, or a step is 0");
}

/// Inserts zeros between the elements of a dimension.
Tensor dilated(Graph &graph, const Tensor &t, unsigned dim, unsigned step) {
  if (step == 1 || t.dim(dim) == 0)
    return t;
  const std::size_t n = t.dim(dim);
  const Tensor apart = popops::pad(graph, t.expand({dim + 1}), 0, std::ptrdiff_t(step) - 1, dim + 1);
  return apart.flatten(dim, dim + 2).slice(0, (n - 1) * step + 1, dim);
}

/// The field of `in` ([batch, channels, field…]) after the transformations that precede the kernel.
Tensor transformedInput(Graph &graph, Tensor in, const ConvParams &p) {
  const ConvParams::InputTransform &t = p.inputTransform;
  for (unsigned i = 0; i < p.getNumFieldDims(); ++i) {
    const unsigned dim = i + 2;
    in = in.slice(t.truncationLower[i], in.dim(dim) - t.truncationUpper[i], dim);
    in = dilated(graph, in, dim, t.dilation[i]);
    if (t.paddingLower[i] || t.paddingUpper[i])
      in = popops::pad(graph, in, t.paddingLower[i], t.paddingUpper[i], dim);
    in = t.flip[i] ? in.reverse(dim) : in;
  }
  return in;
}

/// The inputs of one kernel element: [batch, channels, result field…]; none if its elements were truncated.
Tensor metBy(const Tensor &in, const ConvParams &p, const Shape &tap) {
  const ConvParams::InputTransform &k = p.kernelTransform;
  const ConvParams::OutputTransform &o = p.outputTransform;
  Tensor met = in;
  for (unsigned i = 0; i < tap.size(); ++i) {
    std::size_t at = k.paddingLower[i] + (tap[i] - k.truncationLower[i]) * k.dilation[i];
    at = k.flip[i] ? p.getTransformedKernelSize(i) - 1 - at : at;
    met = met.slice(at + o.truncationLower[i], at + p.getUntransformedOutputSize(i) - o.truncationUpper[i], i + 2).subSample(o.stride[i], i + 2);
  }
  return met;
}

/// Calls f for every kernel element that is not truncated, the last dimension first.
template <class F> void forEachTap(const ConvParams &p, F &&f) {
  const ConvParams::InputTransform &k = p.kernelTransform;
  Shape tap(k.truncationLower.begin(), k.truncationLower.end());
  for (unsigned i = 0; i < tap.size(); ++i)
    if (tap[i] + k.truncationUpper[i] >= p.kernelShape[i])
      return;
  for (;;) {
    f(tap);
    unsigned i = unsigned(tap.size());
    while (i > 0 && ++tap[i - 1] + k.truncationUpper[i - 1] == p.kernelShape[i - 1]) {
      tap[i - 1] = k.truncationLower[i - 1];
      --i;
    }
    if (i == 0)
      return;
  }
}

/// The inputs as a matrix: [groups, batch x result field, channels x kernel elements].
Tensor columns(Graph &graph, const Tensor &in, const ConvParams &p) {
  const Tensor field = transformedInput(graph, in, p);
  std::vector<Tensor> met;
  forEachTap(p, [&](const Shape &tap) {
    const Tensor t = metBy(field, p, tap);
    met.push_back(t.reshape({p.batchSize, p.numConvGroups, p.inputChannelsPerConvGroup, t.numElements() / p.batchSize / p.getNumInputChans(), 1}));
  });
  const Tensor all = poplar::concat(met, 4).dimShuffle({1, 0, 3, 2, 4});
  return all.reshape({p.numConvGroups, p.batchSize * all.dim(2), p.inputChannelsPerConvGroup * all.dim(4)});
}

/// The weights as a matrix: [groups, channels x kernel elements, output channels].
Tensor rowsOf(const Tensor &weights, const ConvParams &p) {
  Tensor kept = weights;
  for (unsigned i = 0; i < p.getNumFieldDims(); ++i)
    kept = kept.slice(p.kernelTransform.truncationLower[i], p.kernelShape[i] - p.kernelTransform.truncationUpper[i], i + 3);
  const Tensor flat = kept.reshape({p.numConvGroups, p.outputChannelsPerConvGroup, kept.numElements() / p.numConvGroups / p.outputChannelsPerConvGroup});
  return flat.dimShuffle({0, 2, 1});
}

Tensor mapped(Graph &graph, poplar::Type type, const Shape &shape, const std::string &name) {
  const Tensor t = graph.addVariable(type, shape, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

Shape inputShape(const ConvParams &p) { return joined({p.batchSize, p.getNumInputChans()}, p.inputFieldShape); }
Shape weightShape(const ConvParams &p) {
  return joined({p.numConvGroups, p.outputChannelsPerConvGroup, p.inputChannelsPerConvGroup}, p.kernelShape);
}

/// The shape of the result before zero padding.
Shape innerShape(const ConvParams &p) {
  Shape shape = p.getOutputFieldShape();
  for (unsigned i = 0; i < shape.size(); ++i)
    shape[i] -= p.outputTransform.paddingLower[i] + p.outputTransform.paddingUpper[i];
  return shape;
}

} // namespace

Tensor createInput(Graph &graph, const ConvParams &params, const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return mapped(graph, params.inputType, inputShape(params), contextName(context, "input"));
}

Tensor createWeights(Graph &graph, const ConvParams &params, const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return mapped(graph, params.inputType, weightShape(params), contextName(context, "weights"));
}

Tensor createBiases(Graph &graph, const Tensor &activations, const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return mapped(graph, activations.elementType(), {activations.dim(1)}, contextName(context, "biases"));
}

void addBias(Graph &graph, const Tensor &in, const Tensor &biases, Sequence &prog, const DebugContext &context, const OptionFlags &) {
  if (in.rank() < 2 || biases.numElements() != in.dim(1))
    throw poputil::poplibs_error("addBias: " + biases.shapeToString() + " biases for activations of shape " + in.shapeToString());
  Shape shape(in.rank(), 1);
  shape[1] = in.dim(1);
  popops::addInPlace(graph, in, biases.reshape(shape), prog, DebugContext(context, "addBias"));
}

Tensor convolution(Graph &graph, const Tensor &in, const Tensor &weights, const ConvParams &params, bool transposeAndFlipWeights,
                   Sequence &prog, const DebugContext &context, const OptionFlags &, PlanningCache *cache) {
  const std::string name = contextName(context, "convolution");
  requireLibrary(graph, "poplin");
  requireParams(params, name);
  requireShape(in, inputShape(params), name);
  Tensor kernel = weights;
  if (transposeAndFlipWeights) {
    kernel = kernel.dimShufflePartial({1, 2}, {2, 1});
    for (unsigned dim = 3; dim < kernel.rank(); ++dim)
      kernel = kernel.reverse(dim);
  }
  requireShape(kernel, weightShape(params), name);
  const Tensor product = matMulGrouped(graph, columns(graph, in, params), rowsOf(kernel, params), prog, params.outputType, name, {}, cache);
  const Shape inner = innerShape(params);
  const Tensor byGroup = product.reshape({params.numConvGroups, params.batchSize, product.dim(1) / params.batchSize, product.dim(2)});
  Tensor out = byGroup.dimShuffle({1, 0, 3, 2}).reshape(joined({params.batchSize, params.getNumOutputChans()}, inner));
  for (unsigned i = 0; i < inner.size(); ++i)
    if (params.outputTransform.paddingLower[i] || params.outputTransform.paddingUpper[i])
      out = popops::pad(graph, out, params.outputTransform.paddingLower[i], params.outputTransform.paddingUpper[i], i + 2);
  return out;
}

Tensor calculateWeightDeltas(Graph &graph, const Tensor &zDeltas, const Tensor &activations, const ConvParams &params, Sequence &prog,
                             const DebugContext &context, const OptionFlags &, PlanningCache *cache) {
  const std::string name = contextName(context, "weightDeltas");
  requireLibrary(graph, "poplin");
  requireParams(params, name);
  requireShape(activations, inputShape(params), name);
  requireShape(zDeltas, joined({params.batchSize, params.getNumOutputChans()}, params.getOutputFieldShape()), name);
  Tensor inner = zDeltas;
  for (unsigned i = 0; i < params.getNumFieldDims(); ++i)
    inner = inner.slice(params.outputTransform.paddingLower[i], inner.dim(i + 2) - params.outputTransform.paddingUpper[i], i + 2);
  for (unsigned i = 0; i < params.getNumFieldDims(); ++i)
    if (params.kernelTransform.truncationLower[i] || params.kernelTransform.truncationUpper[i])
      throw poputil::poplibs_error(name + ": the emulator has no gradients for truncated kernels");
  const std::size_t field = inner.numElements() / params.batchSize / params.getNumOutputChans();
  const Tensor byGroup = inner.reshape({params.batchSize, params.numConvGroups, params.outputChannelsPerConvGroup, field}).dimShuffle({1, 2, 0, 3});
  const Tensor rows = byGroup.reshape({params.numConvGroups, params.outputChannelsPerConvGroup, params.batchSize * field});
  return matMulGrouped(graph, rows, columns(graph, activations, params), prog, params.inputType, name, {}, cache).reshape(weightShape(params));
}

void convolutionWeightUpdate(Graph &graph, const Tensor &zDeltas, const Tensor &weights, const Tensor &activations, const ConvParams &params,
                             float scale, Sequence &prog, const DebugContext &context, const OptionFlags &options, PlanningCache *cache) {
  const Tensor deltas = calculateWeightDeltas(graph, zDeltas, activations, params, prog, context, options, cache);
  popops::scaledAddTo(graph, weights, deltas, scale, prog, DebugContext(context, "weightUpdate"));
}

void convolutionWeightUpdate(Graph &graph, const Tensor &zDeltas, const Tensor &weights, const Tensor &activations, const ConvParams &params,
                             const Tensor &scale, Sequence &prog, const DebugContext &context, const OptionFlags &options, PlanningCache *cache) {
  const Tensor deltas = calculateWeightDeltas(graph, zDeltas, activations, params, prog, context, options, cache);
  popops::scaledAddTo(graph, weights, deltas, scale, prog, DebugContext(context, "weightUpdate"));
}

Tensor createConvOutput(Graph &graph, const ConvParams &params, const DebugContext &context, const OptionFlags &, PlanningCache *) {
  const std::string name = contextName(context, "convOutput");
  requireParams(params, name);
  return mapped(graph, params.outputType, joined({params.batchSize, params.getNumOutputChans()}, params.getOutputFieldShape()), name);
}

void convolutionWithOutput(Graph &graph, const Tensor &in, const Tensor &weights, const Tensor &out, const ConvParams &params,
                           bool transposeAndFlipWeights, Sequence &prog, const DebugContext &context, const OptionFlags &options,
                           PlanningCache *cache) {
  const Tensor result = convolution(graph, in, weights, params, transposeAndFlipWeights, prog, context, options, cache);
  requireShape(out, result.shape(), contextName(context, "convolution") + ": the output");
  prog.add(poplar::program::Copy(result, out, false, context));
}

void weightsTransposeChansFlipXY(Graph &graph, const Tensor &weightsIn, const Tensor &weightsOut, Sequence &prog, const DebugContext &context,
                                 const OptionFlags &) {
  requireLibrary(graph, "poplin");
  if (weightsIn.rank() < 3)
    throw poputil::poplibs_error("weightsTransposeChansFlipXY: weights of shape " + weightsIn.shapeToString());
  Tensor turned = weightsIn.dimShufflePartial({1, 2}, {2, 1});
  for (unsigned dim = 3; dim < turned.rank(); ++dim)
    turned = turned.reverse(dim);
  requireShape(weightsOut, turned.shape(), "weightsTransposeChansFlipXY: the output");
  prog.add(poplar::program::Copy(turned, weightsOut, false, context));
}

namespace {

Tensor biasDeltas(Graph &graph, const Tensor &zDeltas, const Tensor &biases, Sequence &prog, const DebugContext &context) {
  requireLibrary(graph, "poplin");
  addLibrary(graph, "popops");
  if (zDeltas.rank() < 2 || biases.numElements() != zDeltas.dim(1))
    throw poputil::poplibs_error("convolutionBiasUpdate: " + biases.shapeToString() + " biases for gradients of shape " + zDeltas.shapeToString());
  Shape dims{0};
  for (unsigned dim = 2; dim < zDeltas.rank(); ++dim)
    dims.push_back(dim);
  return popops::reduce(graph, zDeltas, biases.elementType(), dims, popops::ReduceParams(popops::Operation::ADD), prog,
                        DebugContext(context, "biasDeltas"));
}

} // namespace

void convolutionBiasUpdate(Graph &graph, const Tensor &zDeltas, const Tensor &biases, float scale, const OptionFlags &, Sequence &prog,
                           const DebugContext &context) {
  popops::scaledAddTo(graph, biases.flatten(), biasDeltas(graph, zDeltas, biases, prog, context), scale, prog, DebugContext(context, "biasUpdate"));
}
void convolutionBiasUpdate(Graph &graph, const Tensor &zDeltas, const Tensor &biases, const Tensor &scale, const OptionFlags &, Sequence &prog,
                           const DebugContext &context) {
  popops::scaledAddTo(graph, biases.flatten(), biasDeltas(graph, zDeltas, biases, prog, context), scale, prog, DebugContext(context, "biasUpdate"));
}

} // namespace poplin
