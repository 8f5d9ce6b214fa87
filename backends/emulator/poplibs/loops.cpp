// popops/Loop.hpp
#include <popops/Loop.hpp>

#include <popops/ElementWise.hpp>
#include <poputil/exceptions.hpp>

#include "builtin.hpp"
#include "elementwise.hpp"

namespace popops {

using namespace poplibs;
using namespace poplar::program;

Sequence countedForLoop(Graph &graph, const Tensor &counter, int initialCount, int countTo, int step, const Program &body,
                        const DebugContext &context) {
  const std::string name = contextName(context, "countedLoop");
  if (step == 0 || counter.numElements() != 1)
    throw poputil::poplibs_error(name + ": a loop with a step of " + std::to_string(step) + " and " + std::to_string(counter.numElements()) + " counters");
  const long distance = step > 0 ? long(countTo) - initialCount : long(initialCount) - countTo;
  const long size = step > 0 ? step : -long(step);
  const unsigned count = distance > 0 ? unsigned((distance + size - 1) / size) : 0;
  Sequence prog(name);
  const poplar::Type type = counter.elementType();
  mapTo(graph, expr::Cast(expr::Const(initialCount), type), {}, counter, prog, name + "/begin");
  Sequence round(name);
  round.add(body);
  mapTo(graph, expr::Add(expr::_1, expr::Const(step)), {counter}, counter, round, name + "/next");
  prog.add(Repeat(count, round, context));
  return prog;
}

Sequence countedForLoop(Graph &graph, const Tensor &counter, int initialCount, const Tensor &countLimit, int step, const Program &body,
                        const DebugContext &context) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "countedLoop");
  if (step == 0 || counter.numElements() != 1 || countLimit.numElements() != 1)
    throw poputil::poplibs_error(name + ": a loop with a step of " + std::to_string(step) + ", " + std::to_string(counter.numElements()) +
                                 " counters and " + std::to_string(countLimit.numElements()) + " limits");
  const poplar::Type type = counter.elementType();
  const Tensor goesOn = graph.addVariable(poplar::BOOL, {}, name + "/goesOn"), limit = graph.clone(countLimit.flatten()[0], name + "/limit");
  graph.setTileMapping(goesOn, 0);
  Sequence prog(name), condition(name), round(name);
  mapTo(graph, expr::Cast(expr::Const(initialCount), type), {}, counter, prog, name + "/begin");
  prog.add(Copy(countLimit.flatten()[0], limit, false, context));
  const std::vector<Tensor> compared{counter.reshape({}), limit};
  if (step > 0)
    mapTo(graph, expr::Lt(expr::_1, expr::_2), compared, goesOn, condition, name + "/test");
  else
    mapTo(graph, expr::Gt(expr::_1, expr::_2), compared, goesOn, condition, name + "/test");
  round.add(body);
  mapTo(graph, expr::Add(expr::_1, expr::Const(step)), {counter}, counter, round, name + "/next");
  prog.add(RepeatWhileTrue(condition, goesOn, round, context));
  return prog;
}

namespace {

Tensor ownCounter(Graph &graph, const poplar::Type &type, const DebugContext &context) {
  requireLibrary(graph, "popops");
  const Tensor counter = graph.addVariable(type, {1}, contextName(context, "countedLoop") + "/counter");
  graph.setTileMapping(counter, 0);
  return counter;
}

} // namespace

Sequence countedForLoop(Graph &graph, int initialCount, const Tensor &countLimit, int step, const Program &body, const DebugContext &context) {
  return countedForLoop(graph, ownCounter(graph, countLimit.elementType(), context), initialCount, countLimit, step, body, context);
}
Sequence countedForLoop(Graph &graph, int initialCount, int countTo, int step, const Program &body, const DebugContext &context) {
  return countedForLoop(graph, ownCounter(graph, poplar::INT, context), initialCount, countTo, step, body, context);
}

Sequence countedLoop(Graph &graph, std::size_t begin, std::size_t end, std::size_t step, const CountedLoopBodyType &body,
                     const DebugContext &context) {
  const Tensor counter = ownCounter(graph, poplar::UNSIGNED_INT, context);
  return countedForLoop(graph, counter, int(begin), int(end), int(step), body(counter), context);
}

Sequence countedLoop(Graph &graph, std::size_t count, const CountedLoopBodyType &body, const DebugContext &context) {
  return countedLoop(graph, 0, count, 1, body, context);
}

Tensor addForLoopCounterVertex(Graph &graph, const Tensor &count, const Tensor &countLimit, int countStep, unsigned tile, Sequence &prog,
                               const DebugContext &context) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "forLoopCounter");
  mapTo(graph, expr::Add(expr::_1, expr::Const(countStep)), {count}, count, prog, name);
  const Tensor goesOn = graph.addVariable(poplar::BOOL, {}, name + "/goesOn");
  graph.setTileMapping(goesOn, tile);
  mapTo(graph, expr::Lt(expr::_1, expr::_2), {count.reshape({}), countLimit.reshape({})}, goesOn, prog, name);
  return goesOn;
}

} // namespace popops
