// popops: several expressions at once, and conversions between variances and deviations with the type of the result.
#include <popops/ElementWise.hpp>

#include <poputil/exceptions.hpp>

#include "elementwise.hpp"

namespace popops {

using namespace poplibs;
using poplar::program::Copy;

namespace {

void requireAsMany(const std::vector<expr::Any> &expressions, const std::vector<Tensor> &outs, const std::string &name) {
  if (expressions.size() > outs.size())
    throw poputil::poplibs_error(name + ": " + std::to_string(expressions.size()) + " expressions for " + std::to_string(outs.size()) + " tensors");
}

Tensor converted(Graph &graph, const expr::Any &expression, const std::vector<Tensor> &tensors, Sequence &prog, poplar::Type type,
                 const std::string &name) {
  return map(graph, expr::Cast(expression, type), tensors, prog, name);
}

expr::Any number(float x, const Tensor &like) { return expr::Cast(expr::Const(x), like.elementType()); }

} // namespace

std::vector<Tensor> map(Graph &graph, const std::vector<expr::Any> &expressions, const std::vector<Tensor> &tensors, Sequence &prog,
                        const DebugContext &context, const OptionFlags &options) {
  std::vector<Tensor> results;
  for (const expr::Any &expression : expressions)
    results.push_back(map(graph, expression, tensors, prog, context, options));
  return results;
}

void mapWithOutput(Graph &graph, const std::vector<expr::Any> &expressions, const std::vector<Tensor> &tensors, const std::vector<Tensor> &outs,
                   Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  requireAsMany(expressions, outs, contextName(context, "mapWithOutput"));
  const std::vector<Tensor> results = map(graph, expressions, tensors, prog, context, options);
  for (std::size_t i = 0; i < results.size(); ++i)
    prog.add(Copy(results[i], outs[i], false, context));
}

void mapInPlace(Graph &graph, const std::vector<expr::Any> &expressions, const std::vector<Tensor> &tensors, Sequence &prog,
                const DebugContext &context, const OptionFlags &options) {
  mapWithOutput(graph, expressions, tensors, tensors, prog, context, options);
}

Tensor varianceToInvStdDev(Graph &graph, const Tensor &src, const Tensor &epsilon, Sequence &prog, poplar::Type dstType,
                           const DebugContext &context) {
  return converted(graph, expr::VarianceToInvStdDev(expr::_1, expr::_2), {src, epsilon}, prog, dstType, contextName(context, "invStdDev"));
}
Tensor varianceToInvStdDev(Graph &graph, const Tensor &src, float epsilon, Sequence &prog, poplar::Type dstType, const DebugContext &context) {
  return converted(graph, expr::VarianceToInvStdDev(expr::_1, number(epsilon, src)), {src}, prog, dstType, contextName(context, "invStdDev"));
}
Tensor invStdDevToVariance(Graph &graph, const Tensor &src, const Tensor &epsilon, Sequence &prog, poplar::Type dstType,
                           const DebugContext &context) {
  return converted(graph, expr::InvStdDevToVariance(expr::_1, expr::_2), {src, epsilon}, prog, dstType, contextName(context, "variance"));
}
Tensor invStdDevToVariance(Graph &graph, const Tensor &src, float epsilon, Sequence &prog, poplar::Type dstType, const DebugContext &context) {
  return converted(graph, expr::InvStdDevToVariance(expr::_1, number(epsilon, src)), {src}, prog, dstType, contextName(context, "variance"));
}

} // namespace popops
