// popnn/Pooling.hpp: one view of the padded input for each kernel element.
#include <popnn/Pooling.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

#include <popops/ElementWise.hpp>
#include <popops/Pad.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace popnn {
namespace pooling {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

namespace {

/// The padded length of a dimension; negative if more is truncated than exists.
std::ptrdiff_t padded(const PoolParams &p, std::size_t d) {
  return std::ptrdiff_t(p.inputFieldShape[d]) + p.inputTruncationOrPaddingLower[d] + p.inputTruncationOrPaddingUpper[d];
}

void check(const PoolParams &p, const std::string &name) {
  const std::size_t n = p.getNumFieldDims();
  if (p.kernelShape.size() != n || p.stride.size() != n || p.inputTruncationOrPaddingLower.size() != n ||
      p.inputTruncationOrPaddingUpper.size() != n)
    throw poputil::poplibs_error(name + ": parameters of fields of different numbers of dimensions");
  for (std::size_t d = 0; d < n; ++d)
    if (p.kernelShape[d] == 0 || p.stride[d] == 0 || padded(p, d) < std::ptrdiff_t(p.kernelShape[d]))
      throw poputil::poplibs_error(name + ": dimension " + std::to_string(d) + " of the field is " + std::to_string(padded(p, d)) +
                                   " long with its padding, the kernel " + std::to_string(p.kernelShape[d]) + ", the stride " +
                                   std::to_string(p.stride[d]));
  if (!isReal(p.dType))
    throw poputil::poplibs_error(name + ": pooling of elements of type " + p.dType.toString());
}

Shape joined(const PoolParams &p, const Shape &field) {
  Shape shape{p.batchSize, p.numChannels};
  shape.insert(shape.end(), field.begin(), field.end());
  return shape;
}

void requireShape(const Tensor &t, const PoolParams &p, const Shape &field, const std::string &what) {
  if (t.shape() != joined(p, field) || t.elementType() != p.dType)
    throw poputil::poplibs_error(what + " of type " + t.elementType().toString() + " and shape " + t.shapeToString() +
                                 " does not fit the parameters of the pooling");
}

/// Padding, or truncation if negative, of all dimensions of the field; `back` reverses it for a gradient.
Tensor withPadding(Graph &graph, const PoolParams &p, const Tensor &in, float value, bool back = false) {
  std::vector<std::ptrdiff_t> lower(2), upper(2);
  for (std::size_t d = 0; d < p.getNumFieldDims(); ++d) {
    lower.push_back(back ? -p.inputTruncationOrPaddingLower[d] : p.inputTruncationOrPaddingLower[d]);
    upper.push_back(back ? -p.inputTruncationOrPaddingUpper[d] : p.inputTruncationOrPaddingUpper[d]);
  }
  return popops::pad(graph, in, lower, upper, value);
}

/// The inputs of one kernel element in a padded tensor: one per result.
Tensor metBy(const PoolParams &p, const Tensor &field, std::size_t tap) {
  const Shape out = p.getOutputFieldShape();
  Tensor met = field;
  for (std::size_t d = p.getNumFieldDims(); d-- > 0;) {
    const std::size_t at = tap % p.kernelShape[d];
    tap /= p.kernelShape[d];
    met = met.slice(at, at + (out[d] - 1) * p.stride[d] + 1, unsigned(d + 2)).subSample(p.stride[d], unsigned(d + 2));
  }
  return met;
}

std::size_t taps(const PoolParams &p) {
  return std::accumulate(p.kernelShape.begin(), p.kernelShape.end(), std::size_t(1), [](std::size_t a, std::size_t b) { return a * b; });
}

/// Number of elements under the kernel, excluding padding, for each output position.
std::vector<float> counts(const PoolParams &p) {
  const Shape out = p.getOutputFieldShape();
  std::vector<float> found{1};
  for (std::size_t d = 0; d < out.size(); ++d) {
    std::vector<float> longer;
    for (float before : found)
      for (std::size_t o = 0; o < out[d]; ++o) {
        const std::ptrdiff_t begin = std::ptrdiff_t(o * p.stride[d]) - p.inputTruncationOrPaddingLower[d];
        const std::ptrdiff_t low = std::max<std::ptrdiff_t>({begin, 0, -p.inputTruncationOrPaddingLower[d]});
        const std::ptrdiff_t high =
            std::min<std::ptrdiff_t>({begin + std::ptrdiff_t(p.kernelShape[d]), std::ptrdiff_t(p.inputFieldShape[d]),
                                      std::ptrdiff_t(p.inputFieldShape[d]) + p.inputTruncationOrPaddingUpper[d]});
        longer.push_back(before * float(std::max<std::ptrdiff_t>(0, high - low)));
      }
    found = longer;
  }
  return found;
}

/// One number per position of the field, [1, 1, field...].
Tensor ofPlaces(Graph &graph, const PoolParams &p, const Type &type, const std::vector<float> &values, const std::string &name) {
  Shape shape{1, 1};
  const Shape out = p.getOutputFieldShape();
  shape.insert(shape.end(), out.begin(), out.end());
  const Tensor t = graph.addConstant<float>(type, shape, values, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// 1 / count of each position; 1 if there is only padding.
Tensor shares(Graph &graph, const PoolParams &p, const std::string &name) {
  std::vector<float> values = counts(p);
  for (float &v : values)
    v = v > 0 ? 1 / v : 1;
  return ofPlaces(graph, p, poplar::FLOAT, values, name + "/shares");
}

bool meetsOnlyPadding(const PoolParams &p) {
  const std::vector<float> found = counts(p);
  return std::find(found.begin(), found.end(), 0.f) != found.end();
}

/// The gradient of every result is added to the inputs of its kernel, one kernel element after the other.
template <class F> Tensor spread(Graph &graph, const PoolParams &p, Sequence &prog, const std::string &name, F &&add) {
  Shape field;
  for (std::size_t d = 0; d < p.getNumFieldDims(); ++d)
    field.push_back(std::size_t(padded(p, d)));
  const Tensor sums = graph.addVariable(p.dType, joined(p, field), name + "/gradient");
  poputil::mapTensorLinearly(graph, sums);
  popops::zero(graph, sums, prog, name);
  for (std::size_t tap = 0; tap < taps(p); ++tap)
    add(metBy(p, sums, tap), tap);
  return withPadding(graph, p, sums, 0, true);
}

std::string begin(Graph &graph, const PoolParams &p, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "pool");
  requireLibrary(graph, "popnn");
  addLibrary(graph, "popops");
  check(p, name);
  // Both select how work is divided.
  for (const auto &option : options)
    if (option.first != "poolUseIntrospectiveMapping" && option.first != "optimizeForSpeed")
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
  return name;
}

/// The gradient of a sum or an average.
Tensor sumGradient(Graph &graph, const PoolParams &p, const Tensor &gradient, Sequence &prog, const std::string &name) {
  Tensor share = gradient;
  if (p.poolingType == PoolingType::AVG)
    share = popops::map(graph, Mul(_1, Cast(_2, p.dType)), {gradient, shares(graph, p, name)}, prog, name + "/share");
  return spread(graph, p, prog, name,
                [&](const Tensor &to, std::size_t) { popops::mapInPlace(graph, Add(_1, _2), {to, share}, prog, name + "/add"); });
}

Tensor maxGradient(Graph &graph, const PoolParams &p, const Tensor &in, const Tensor &pooled, const Tensor &gradient, bool scaled,
                   Sequence &prog, const std::string &name) {
  const Tensor field = withPadding(graph, p, in, -std::numeric_limits<float>::infinity());
  Tensor share = gradient;
  if (scaled) {
    const Tensor equal = graph.clone(poplar::FLOAT, pooled, name + "/equal");
    popops::zero(graph, equal, prog, name);
    for (std::size_t tap = 0; tap < taps(p); ++tap)
      popops::mapInPlace(graph, Add(_1, Cast(Equal(_2, _3), poplar::FLOAT)), {equal, metBy(p, field, tap), pooled}, prog, name + "/count");
    share =
        popops::map(graph, Cast(Divide(Cast(_1, poplar::FLOAT), Max(_2, Const(1.f))), p.dType), {gradient, equal}, prog, name + "/share");
  }
  return spread(graph, p, prog, name, [&](const Tensor &to, std::size_t tap) {
    popops::mapInPlace(graph, Select(Add(_1, _2), _1, Equal(_3, _4)), {to, share, metBy(p, field, tap), pooled}, prog, name + "/add");
  });
}

} // namespace

std::vector<std::size_t> PoolParams::getOutputFieldShape() const {
  check(*this, "pool");
  Shape shape;
  for (std::size_t d = 0; d < getNumFieldDims(); ++d)
    shape.push_back((std::size_t(padded(*this, d)) - kernelShape[d]) / stride[d] + 1);
  return shape;
}

const char *asString(const PoolingType &method) { return method == PoolingType::MAX ? "max" : method == PoolingType::AVG ? "avg" : "sum"; }

std::ostream &operator<<(std::ostream &stream, const PoolParams &p) {
  const auto list = [&](const char *name, const auto &values) {
    stream << ", " << name << " {";
    for (std::size_t i = 0; i < values.size(); ++i)
      stream << (i ? "," : "") << values[i];
    stream << "}";
  };
  stream << asString(p.poolingType) << " pooling of " << p.batchSize << " x " << p.numChannels << " " << p.dType.toString();
  list("field", p.inputFieldShape);
  list("kernel", p.kernelShape);
  list("stride", p.stride);
  list("lower", p.inputTruncationOrPaddingLower);
  list("upper", p.inputTruncationOrPaddingUpper);
  return stream;
}

std::uint64_t getFwdFlops(const PoolParams &p) {
  const std::vector<float> found = counts(p);
  const double elements = std::accumulate(found.begin(), found.end(), 0.0);
  // The first kernel element costs no operation; an average divides once.
  return std::uint64_t(double(p.batchSize * p.numChannels) * (elements - (p.poolingType == PoolingType::AVG ? 0 : double(found.size()))));
}
std::uint64_t getBwdFlops(const PoolParams &p) { return p.poolingType == PoolingType::MAX ? 0 : getFwdFlops(p); }

Tensor pool(Graph &graph, const PoolParams &p, const Tensor &in, Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  const std::string name = begin(graph, p, context, options);
  requireShape(in, p, p.inputFieldShape, name + ": an input");
  const bool isMax = p.poolingType == PoolingType::MAX;
  const Tensor field = withPadding(graph, p, in, isMax ? -std::numeric_limits<float>::infinity() : 0.f);
  const Tensor out = graph.addVariable(p.dType, joined(p, p.getOutputFieldShape()), name + "/Out");
  poputil::mapTensorLinearly(graph, out);
  // As many views at once as an expression has placeholders; sums stay in float until the end.
  const Tensor sums = isMax || p.dType == poplar::FLOAT ? out : graph.clone(poplar::FLOAT, out, name + "/sums");
  const Type type = sums.elementType();
  const std::size_t all = taps(p), atOnce = 8;
  for (std::size_t first = 0; first < all; first += atOnce) {
    std::vector<Tensor> tensors;
    if (first)
      tensors.push_back(sums);
    for (std::size_t tap = first; tap < std::min(all, first + atOnce); ++tap)
      tensors.push_back(metBy(p, field, tap));
    Any total = Cast(PlaceHolder(1), type);
    for (unsigned i = 2; i <= tensors.size(); ++i)
      total = isMax ? Any(Max(total, Cast(PlaceHolder(i), type))) : Any(Add(total, Cast(PlaceHolder(i), type)));
    mapTo(graph, total, tensors, sums, prog, name);
  }
  if (p.poolingType == PoolingType::AVG)
    mapTo(graph, Cast(Mul(_1, _2), p.dType), {sums, shares(graph, p, name)}, out, prog, name + "/average");
  else if (!isMax && !(sums == out))
    mapTo(graph, Cast(_1, p.dType), {sums}, out, prog, name + "/round");
  else if (isMax && meetsOnlyPadding(p))
    mapTo(graph, Select(_1, _2, Gt(_2, Const(0.f))), {out, ofPlaces(graph, p, p.dType, counts(p), name + "/counts")}, out, prog,
          name + "/padding");
  return out;
}

Tensor poolInputGradient(Graph &graph, const PoolParams &p, const Tensor &in, const Tensor &pooled, const Tensor &gradient,
                         bool useScaledGradient, Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  const std::string name = begin(graph, p, context, options);
  requireShape(gradient, p, p.getOutputFieldShape(), name + ": a gradient");
  if (p.poolingType != PoolingType::MAX)
    return sumGradient(graph, p, gradient, prog, name);
  requireShape(in, p, p.inputFieldShape, name + ": an input");
  requireShape(pooled, p, p.getOutputFieldShape(), name + ": a result");
  return maxGradient(graph, p, in, pooled, gradient, useScaledGradient, prog, name);
}

Tensor poolInputGradient(Graph &graph, const PoolParams &p, unsigned, const Tensor &gradient, Sequence &prog, const DebugContext &context,
                         const OptionFlags &options) {
  const std::string name = begin(graph, p, context, options);
  requireShape(gradient, p, p.getOutputFieldShape(), name + ": a gradient");
  if (p.poolingType == PoolingType::MAX)
    throw poputil::poplibs_error(name + ": the gradient of a maximum needs the input and the result");
  return sumGradient(graph, p, gradient, prog, name);
}

} // namespace pooling
} // namespace popnn
