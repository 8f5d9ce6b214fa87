// zero, fill, cast, sums of scaled tensors.
#include <popops/Cast.hpp>
#include <popops/Fill.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Zero.hpp>

#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace popops {

using namespace poplibs;
using namespace popops::expr;
using poplar::ComputeSet;
using poplar::program::Execute;

namespace {

Cast constantOf(const Tensor &tensor, const poplar::HostValue &value) {
  return value.isFloat ? Cast(Const(value.real), tensor.elementType()) : Cast(Const(value.integer), tensor.elementType());
}

} // namespace

Tensor checkAccuracyWhenCast(Graph &graph, const Tensor &input, Type outputType, double tolerance, Sequence &prog,
                             const DebugContext &context) {
  const std::string name = contextName(context, "checkAccuracyWhenCast");
  for (const Type &type : {input.elementType(), outputType})
    if (type != poplar::FLOAT && type != poplar::HALF)
      throw poputil::poplibs_error(name + ": a cast of " + input.elementType().toString() + " to " + outputType.toString() +
                                   "; both must be half or float");
  if (input.numElements() != 1)
    throw poputil::poplibs_error(name + ": a tensor of shape " + input.shapeToString() + " is not one number");
  const Any x = Cast(_1, poplar::FLOAT), after = Cast(Cast(_1, outputType), poplar::FLOAT);
  return map(graph, Lte(Abs(Sub(after, x)), Mul(Abs(x), Const(float(tolerance)))), {input.flatten()[0]}, prog, name);
}

void detail::fill(Graph &graph, const Tensor &tensor, Sequence &prog, poplar::HostValue value, const DebugContext &context) {
  requireLibrary(graph, "popops");
  mapTo(graph, constantOf(tensor, value), {}, tensor, prog, contextName(context, "fill"));
}

void detail::fill(Graph &graph, const Tensor &tensor, ComputeSet computeSet, poplar::HostValue value) {
  requireLibrary(graph, "popops");
  addElementWork(graph, computeSet, constantOf(tensor, value), {}, tensor, "fill");
}

void zero(Graph &graph, const Tensor &tensor, ComputeSet computeSet) { detail::fill(graph, tensor, computeSet, 0); }
void zero(Graph &graph, Tensor tensor, const std::vector<poplar::Interval> &regions, unsigned, ComputeSet computeSet) {
  if (!regions.empty())
    zero(graph, pick(tensor.flatten(), regions), computeSet);
}
void zero(Graph &graph, const Tensor &tensor, unsigned, ComputeSet computeSet) { zero(graph, tensor, computeSet); }
void zero(Graph &graph, const Tensor &tensor, const std::vector<std::vector<poplar::Interval>> &mapping, ComputeSet computeSet) {
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    zero(graph, tensor, mapping[tile], unsigned(tile), computeSet);
}
void zero(Graph &graph, const Tensor &tensor, Sequence &prog, const DebugContext &context) {
  detail::fill(graph, tensor, prog, 0, contextName(context, "zero"));
}

void cast(Graph &graph, Tensor src, Tensor dst, ComputeSet computeSet) {
  requireLibrary(graph, "popops");
  if (src.shape() != dst.shape())
    throw poputil::poplibs_error("cast: shapes " + src.shapeToString() + " and " + dst.shapeToString() + " differ");
  if (detail::castsQuarters(src, dst))
    return detail::castQuarters(graph, src, dst, computeSet);
  addElementWork(graph, computeSet, Cast(_1, dst.elementType()), {src}, dst, "cast");
}

Tensor cast(Graph &graph, const Tensor &src, const poplar::Type &dstType, ComputeSet computeSet, const DebugContext &context) {
  const Tensor dst = outputLike(graph, dstType, src.shape(), {src}, contextName(context, "cast"));
  cast(graph, src, dst, computeSet);
  return dst;
}

poplar::program::Program cast(Graph &graph, Tensor src, Tensor dst, const DebugContext &context) {
  const ComputeSet computeSet = graph.addComputeSet(contextName(context, "cast"));
  cast(graph, src, dst, computeSet);
  return Execute(computeSet);
}

Tensor cast(Graph &graph, const Tensor &src, const poplar::Type &dstType, Sequence &prog, const DebugContext &context) {
  const Tensor dst = outputLike(graph, dstType, src.shape(), {src}, contextName(context, "cast"));
  prog.add(cast(graph, src, dst, context));
  return dst;
}

namespace {

void requireSameShape(const Tensor &A, const Tensor &B, const std::string &name) {
  if (A.shape() != B.shape())
    throw poputil::poplibs_error(name + ": shapes " + A.shapeToString() + " and " + B.shapeToString() + " differ");
}

/// B converted to the type of A.
Any second(const Tensor &A, const Tensor &B) { return A.elementType() == B.elementType() ? Any(_2) : Any(Cast(_2, A.elementType())); }

void addScaled(Graph &graph, const Tensor &A, const Tensor &B, const Expr &sum, const std::vector<Tensor> &scales, Sequence &prog,
               const std::string &name) {
  requireLibrary(graph, "popops");
  requireSameShape(A, B, name);
  std::vector<Tensor> tensors{A, B};
  for (const Tensor &scale : scales) {
    if (scale.numElements() != 1)
      throw poputil::poplibs_error(name + ": a scale is one element, not " + scale.shapeToString());
    tensors.push_back(scale);
  }
  mapTo(graph, sum, tensors, A, prog, name);
}

} // namespace

void scaledAddTo(Graph &graph, Tensor A, Tensor B, float scaleB, Sequence &prog, const DebugContext &context, const OptionFlags &) {
  addScaled(graph, A, B, Add(_1, Mul(second(A, B), Const(scaleB))), {}, prog, contextName(context, "scaledAddTo"));
}

void scaledAddTo(Graph &graph, Tensor A, Tensor B, Tensor scaleB, Sequence &prog, const DebugContext &context, const OptionFlags &) {
  addScaled(graph, A, B, Add(_1, Mul(second(A, B), Cast(_3, A.elementType()))), {scaleB}, prog, contextName(context, "scaledAddTo"));
}

void scaledAddTo(Graph &graph, Tensor A, float scaleA, Tensor B, float scaleB, Sequence &prog, const DebugContext &context,
                 const OptionFlags &) {
  addScaled(graph, A, B, Add(Mul(_1, Const(scaleA)), Mul(second(A, B), Const(scaleB))), {}, prog, contextName(context, "scaledAddTo"));
}

void scaledAddTo(Graph &graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB, Sequence &prog, const DebugContext &context,
                 const OptionFlags &) {
  const poplar::Type type = A.elementType();
  addScaled(graph, A, B, Add(Mul(_1, Cast(_3, type)), Mul(second(A, B), Cast(_4, type))), {scaleA, scaleB}, prog,
            contextName(context, "scaledAddTo"));
}

void scaledAddTo(Graph &graph, Tensor A, float scaleA, Tensor B, float scaleB, Sequence &prog, ScaledAddSpecialisation speciality,
                 const DebugContext &context, const OptionFlags &options) {
  if (speciality == ScaledAddSpecialisation::DEFAULT)
    return scaledAddTo(graph, A, scaleA, B, scaleB, prog, context, options);
  addScaled(graph, A, B, Add(Sub(_1, Mul(_1, Const(scaleA))), Mul(second(A, B), Const(scaleB))), {}, prog,
            contextName(context, "scaledAddTo"));
}

void scaledAddTo(Graph &graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB, Sequence &prog, ScaledAddSpecialisation speciality,
                 const DebugContext &context, const OptionFlags &options) {
  if (speciality == ScaledAddSpecialisation::DEFAULT)
    return scaledAddTo(graph, A, scaleA, B, scaleB, prog, context, options);
  const poplar::Type type = A.elementType();
  addScaled(graph, A, B, Add(Sub(_1, Mul(_1, Cast(_3, type))), Mul(second(A, B), Cast(_4, type))), {scaleA, scaleB}, prog,
            contextName(context, "scaledAddTo"));
}

void scaledSubtractFrom(Graph &graph, Tensor A, float scaleA, Tensor B, float scaleB, Sequence &prog, const DebugContext &context,
                        const OptionFlags &) {
  addScaled(graph, A, B, Sub(Mul(_1, Const(scaleA)), Mul(second(A, B), Const(scaleB))), {}, prog,
            contextName(context, "scaledSubtractFrom"));
}

void scaledSubtractFrom(Graph &graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB, Sequence &prog, const DebugContext &context,
                        const OptionFlags &) {
  const poplar::Type type = A.elementType();
  addScaled(graph, A, B, Sub(Mul(_1, Cast(_3, type)), Mul(second(A, B), Cast(_4, type))), {scaleA, scaleB}, prog,
            contextName(context, "scaledSubtractFrom"));
}

void scaledSubtractFrom(Graph &graph, Tensor A, Tensor B, float scaleB, Sequence &prog, const DebugContext &context, const OptionFlags &) {
  addScaled(graph, A, B, Sub(_1, Mul(second(A, B), Const(scaleB))), {}, prog, contextName(context, "scaledSubtractFrom"));
}

void scaledSubtractFrom(Graph &graph, Tensor A, Tensor B, Tensor scaleB, Sequence &prog, const DebugContext &context, const OptionFlags &) {
  addScaled(graph, A, B, Sub(_1, Mul(second(A, B), Cast(_3, A.elementType()))), {scaleB}, prog, contextName(context, "scaledSubtractFrom"));
}

} // namespace popops
