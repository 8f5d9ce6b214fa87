// Counting loops.
#ifndef SNNC_POPOPS_LOOP_HPP
#define SNNC_POPOPS_LOOP_HPP

#include <cstddef>
#include <functional>

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

using CountedLoopBodyType = std::function<poplar::program::Program(const poplar::Tensor &)>;

/// Runs body(counter) for counter = begin, begin + step, … < end. The body is built once.
poplar::program::Sequence countedLoop(poplar::Graph &graph, std::size_t begin, std::size_t end, std::size_t step, const CountedLoopBodyType &body,
                                      const poplar::DebugContext &context = {});
poplar::program::Sequence countedLoop(poplar::Graph &graph, std::size_t count, const CountedLoopBodyType &body,
                                      const poplar::DebugContext &context = {});
/// As above, with the caller's counter.
poplar::program::Sequence countedForLoop(poplar::Graph &graph, const poplar::Tensor &counter, int initialCount, int countTo, int step,
                                         const poplar::program::Program &body, const poplar::DebugContext &context = {});
/// As above, with an end that is read when the loop starts.
poplar::program::Sequence countedForLoop(poplar::Graph &graph, const poplar::Tensor &counter, int initialCount, const poplar::Tensor &countLimit,
                                         int step, const poplar::program::Program &body, const poplar::DebugContext &context = {});
poplar::program::Sequence countedForLoop(poplar::Graph &graph, int initialCount, const poplar::Tensor &countLimit, int step,
                                         const poplar::program::Program &body, const poplar::DebugContext &context = {});
/// As above, with an internal counter that the body does not see.
poplar::program::Sequence countedForLoop(poplar::Graph &graph, int initialCount, int countTo, int step, const poplar::program::Program &body,
                                         const poplar::DebugContext &context = {});
poplar::Tensor addForLoopCounterVertex(poplar::Graph &graph, const poplar::Tensor &count, const poplar::Tensor &countLimit, int countStep,
                                       unsigned tile, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});

} // namespace popops

#endif
