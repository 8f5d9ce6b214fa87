// popops: images, runs of rows, and B-splines.
#include <popops/NormaliseImage.hpp>
#include <popops/SequenceSlice.hpp>
#include <popops/SplineBasis.hpp>
#include <popops/SplineWeighting.hpp>

#include <numeric>

#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Pad.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace popops {

using namespace poplibs;
using namespace expr;
using poplar::DebugContext;
using poplar::FLOAT;
using poplar::HALF;
using poplar::program::Copy;
using poplar::program::Sequence;

Tensor createNormaliseImageInput(Graph &graph, const Type &type, poplar::ArrayRef<std::size_t> shape, const DebugContext &context) {
  const std::string name = contextName(context, "image");
  const std::vector<std::size_t> dims(shape.begin(), shape.end());
  const Tensor t = graph.addVariable(type, dims, name);
  if (t.rank() == 0 || t.dim(t.rank() - 1) != 3)
    throw poputil::poplibs_error(name + ": an image of shape " + t.shapeToString() + "; its last dimension is that of three channels");
  poputil::mapTensorLinearly(graph, t, 3, 3); // whole pixels
  return t;
}

Tensor normaliseImage(Graph &graph, Sequence &prog, Tensor in, float inScale, Tensor offsets, Tensor scales, const DebugContext &context) {
  const std::string name = contextName(context, "normaliseImage");
  requireLibrary(graph, "popops");
  const Type type = in.elementType() == poplar::UNSIGNED_CHAR ? HALF : in.elementType();
  if (in.rank() == 0 || in.dim(in.rank() - 1) != 3 || !isReal(type))
    throw poputil::poplibs_error(name + ": an image of type " + in.elementType().toString() + " and shape " + in.shapeToString());
  for (const Tensor &t : {offsets, scales})
    if (t.shape() != std::vector<std::size_t>{3} || t.elementType() != type)
      throw poputil::poplibs_error(name + ": a factor of type " + t.elementType().toString() + " and shape " + t.shapeToString() +
                                   " for each channel; the image needs {3} of type " + type.toString());
  const Any pixel = Mul(Cast(_1, FLOAT), Const(inScale)), scaled = Mul(Sub(pixel, Cast(_2, FLOAT)), Cast(_3, FLOAT));
  const Tensor out = map(graph, Cast(scaled, type), {in, offsets, scales}, prog, name);
  return pad(graph, out, 0, 1, unsigned(in.rank() - 1));
}

void sequenceSlice(Graph &graph, const Tensor &tIn, const Tensor &tOut, const Tensor &tN, const Tensor &tInOffset, const Tensor &tOutOffset,
                   bool zeroUnused, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "sequenceSlice");
  requireLibrary(graph, "popops");
  if (tIn.rank() < 2 || tOut.rank() < 2 || tIn.elementType() != tOut.elementType() ||
      tIn.numElements() * tOut.dim(0) != tOut.numElements() * tIn.dim(0))
    throw poputil::poplibs_error(name + ": rows of shape " + tIn.shapeToString() + " do not fit a tensor of shape " + tOut.shapeToString());
  if (tN.rank() != 1 || tInOffset.shape() != tN.shape() || tOutOffset.shape() != tN.shape())
    throw poputil::poplibs_error(name + ": " + tN.shapeToString() + " numbers of rows, and offsets of shapes " + tInOffset.shapeToString() +
                                 " and " + tOutOffset.shapeToString());
  const std::size_t rows = tOut.dim(0);
  std::vector<unsigned> numbers(rows);
  std::iota(numbers.begin(), numbers.end(), 0u);
  const Tensor row = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {rows, 1}, numbers, name + "/rows");
  poputil::mapTensorLinearly(graph, row);
  const auto plain = [&](const Tensor &t) { return cast(graph, t, poplar::UNSIGNED_INT, prog, name).expand({0}); };
  const std::vector<Tensor> runs{row, plain(tOutOffset), plain(tN), plain(tInOffset)};
  const Any inside = And(Gte(_1, _2), Lt(_1, Add(_2, _3)));
  const Tensor hits = map(graph, inside, runs, prog, name + "/inside");
  const Tensor places = map(graph, Select(Add(Sub(_1, _2), _4), Const(0u), inside), runs, prog, name + "/places");
  const Tensor hit = reduce(graph, hits, poplar::BOOL, {1}, ReduceParams(Operation::LOGICAL_OR), prog, name);
  const Tensor place = reduce(graph, places, poplar::UNSIGNED_INT, {1}, ReduceParams(Operation::ADD), prog, name);
  const Tensor found = multiSlice(graph, tIn.reshape({tIn.dim(0), tIn.numElements() / tIn.dim(0)}), place.expand({1}), {0}, {1}, prog, name);
  const Tensor out = tOut.reshape({rows, tOut.numElements() / rows}), taken = found.reshape(out.shape());
  const Any other = zeroUnused ? Any(Cast(Const(0), tOut.elementType())) : Any(_2);
  mapWithOutput(graph, Select(_1, other, _3), {taken, out, hit.expand({1})}, out, prog, name + "/write");
}

namespace {

/// The k-th B-spline that is not zero at v, the distance from the grid point before.
Any spline(unsigned degree, unsigned k, const Any &v) {
  const auto number = [](double x) { return Any(Const(float(x))); };
  // Coefficients of 1, v, v^2, v^3.
  static constexpr double linear[2][4] = {{1, -1, 0, 0}, {0, 1, 0, 0}};
  static constexpr double quadratic[3][4] = {{0.5, -1, 0.5, 0}, {0.5, 1, -1, 0}, {0, 0, 0.5, 0}};
  static constexpr double cubic[4][4] = {
      {1. / 6, -0.5, 0.5, -1. / 6}, {4. / 6, 0, -1, 0.5}, {1. / 6, 0.5, 0.5, -0.5}, {0, 0, 0, 1. / 6}};
  const double *c = degree == 1 ? linear[k] : degree == 2 ? quadratic[k] : cubic[k];
  return Add(Mul(Add(Mul(Add(Mul(number(c[3]), v), number(c[2])), v), number(c[1])), v), number(c[0]));
}

void checkSplines(const Tensor &pseudo, const Tensor &kernelSize, const Tensor &isOpen, const Tensor &basis, const Tensor &weightIndex,
                  unsigned degree, const std::string &name) {
  const std::size_t dims = pseudo.rank() == 2 ? pseudo.dim(1) : 0;
  if (dims == 0 || !isReal(pseudo.elementType()) || degree < 1 || degree > 3)
    throw poputil::poplibs_error(name + ": splines of degree " + std::to_string(degree) + " for coordinates of type " +
                                 pseudo.elementType().toString() + " and shape " + pseudo.shapeToString());
  if (kernelSize.shape() != std::vector<std::size_t>{dims} || isOpen.shape() != kernelSize.shape() ||
      isOpen.elementType() != poplar::UNSIGNED_CHAR)
    throw poputil::poplibs_error(name + ": kernel sizes of shape " + kernelSize.shapeToString() + " and flags of type " +
                                 isOpen.elementType().toString() + " and shape " + isOpen.shapeToString() + " for " + std::to_string(dims) +
                                 " dimensions");
  std::size_t splines = 1;
  for (std::size_t d = 0; d < dims; ++d)
    splines *= degree + 1;
  if (basis.shape() != std::vector<std::size_t>{pseudo.dim(0), splines} || weightIndex.shape() != basis.shape() ||
      basis.elementType() != pseudo.elementType())
    throw poputil::poplibs_error(name + ": a basis of shape " + basis.shapeToString() + " and indices of shape " +
                                 weightIndex.shapeToString() + " for " + std::to_string(splines) + " splines");
}

} // namespace

void splineBasis(Graph &graph, const Tensor &pseudo, const Tensor &kernelSize, const Tensor &isOpenSpline, const Tensor &basis,
                 const Tensor &weightIndex, unsigned degree, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "splineBasis");
  requireLibrary(graph, "popops");
  checkSplines(pseudo, kernelSize, isOpenSpline, basis, weightIndex, degree, name);
  const std::size_t edges = pseudo.dim(0), dims = pseudo.dim(1), splines = basis.dim(1);
  const Tensor sizes = cast(graph, kernelSize, poplar::INT, prog, name), open = cast(graph, isOpenSpline, poplar::INT, prog, name);
  // Place in the grid: coordinate times (size - degree) if open, times size if closed.
  const Any extent = Cast(Sub(_2, Mul(_3, Const(int(degree)))), FLOAT);
  const Tensor places = map(graph, Mul(Cast(_1, FLOAT), extent), {pseudo, sizes.expand({0}), open.expand({0})}, prog, name + "/places");
  std::vector<Tensor> values, indices;
  for (std::size_t s = 0; s < splines; ++s) {
    Tensor value, index;
    std::size_t rest = s;
    Tensor step;
    for (std::size_t d = 0; d < dims; ++d, rest /= degree + 1) {
      const unsigned k = unsigned(rest % (degree + 1));
      const Tensor place = places.slice(d, d + 1, 1), size = sizes.slice(d, d + 1).expand({0});
      const Tensor one = map(graph, spline(degree, k, Sub(_1, Floor(_1))), {place}, prog, name);
      const Tensor at = map(graph, Rem(Add(Cast(Floor(_1), poplar::INT), Const(int(k))), _2), {place, size}, prog, name);
      value = d == 0 ? one : map(graph, Mul(_1, _2), {value, one}, prog, name);
      index = d == 0 ? at : map(graph, Add(_1, Mul(_2, _3)), {index, at, step}, prog, name);
      step = d == 0 ? size : map(graph, Mul(_1, _2), {step, size}, prog, name);
    }
    values.push_back(value);
    indices.push_back(index);
  }
  if (edges == 0)
    return;
  prog.add(cast(graph, poplar::concat(values, 1), basis, name));
  prog.add(cast(graph, poplar::concat(indices, 1), weightIndex, name));
}

Tensor splineWeighting(Graph &graph, const Tensor &input, const Tensor &weight, const Tensor &basis, const Tensor &weightIndex, Sequence &prog,
                       const DebugContext &context) {
  const std::string name = contextName(context, "splineWeighting");
  requireLibrary(graph, "popops");
  const Type type = input.elementType();
  const bool fits = input.rank() == 2 && weight.rank() == 3 && basis.rank() == 2 && weightIndex.shape() == basis.shape() &&
                    basis.dim(0) == input.dim(0) && weight.dim(1) == input.dim(1);
  if (!fits || !isReal(type) || weight.elementType() != type || basis.elementType() != type)
    throw poputil::poplibs_error(name + ": input of shape " + input.shapeToString() + ", weights of shape " + weight.shapeToString() +
                                 ", basis of shape " + basis.shapeToString() + " and indices of shape " + weightIndex.shapeToString() +
                                 " do not fit, or are of different types");
  const std::size_t edges = input.dim(0), in = input.dim(1), out = weight.dim(2), splines = basis.dim(1);
  const Tensor rows = cast(graph, weightIndex, poplar::UNSIGNED_INT, prog, name).reshape({edges * splines, 1});
  const Tensor picked = multiSlice(graph, weight.reshape({weight.dim(0), in * out}), rows, {0}, {1}, prog, name);
  const Any term = Mul(Mul(Cast(_1, FLOAT), Cast(_2, FLOAT)), Cast(_3, FLOAT));
  const Tensor terms = map(graph, term,
                           {picked.reshape({edges, splines, in, out}), basis.reshape({edges, splines, 1, 1}), input.reshape({edges, 1, in, 1})},
                           prog, name + "/terms");
  return reduce(graph, terms, type, {1, 2}, ReduceParams(Operation::ADD), prog, name);
}

} // namespace popops
