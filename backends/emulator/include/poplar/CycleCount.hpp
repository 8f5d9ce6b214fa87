// Cycles of a part of the program.
#ifndef SNNC_POPLAR_CYCLE_COUNT_HPP
#define SNNC_POPLAR_CYCLE_COUNT_HPP

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/SyncType.hpp>
#include <poplar/Tensor.hpp>

namespace poplar {

/// Changes `prog` to count its own cycles: UNSIGNED_INT {2}, the low word first.
Tensor cycleCount(Graph &graph, program::Sequence &prog, unsigned tile, SyncType syncType, const DebugContext &context = {});
inline Tensor cycleCount(Graph &graph, program::Sequence &prog, unsigned tile, const DebugContext &context = {}) {
  return cycleCount(graph, prog, tile, SyncType::INTERNAL, context);
}
/// The cycles since the engine was loaded, written by `prog`.
Tensor cycleStamp(Graph &graph, program::Sequence &prog, unsigned tile, SyncType syncType, const DebugContext &context = {});

} // namespace poplar

#endif
