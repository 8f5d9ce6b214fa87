// Cost of vertices as functions of their fields.
#ifndef SNNC_POPLAR_PERF_ESTIMATE_FUNC_HPP
#define SNNC_POPLAR_PERF_ESTIMATE_FUNC_HPP

#include <cstdint>
#include <functional>

#include <poplar/VertexIntrospector.hpp>

namespace poplar {

class Target;

/// Worker cycles of a Vertex, tile cycles of a MultiVertex.
struct VertexPerfEstimate {
  VertexPerfEstimate() = default;
  VertexPerfEstimate(std::uint64_t cycleCount, std::uint64_t flopCount = 0) : cycles(cycleCount), flops(flopCount) {}
  std::uint64_t cycles = 0, flops = 0;
};

using PerfEstimateFunc = std::function<VertexPerfEstimate(const VertexIntrospector &, const Target &)>;
using CycleEstimateFunc = std::function<std::uint64_t(const VertexIntrospector &, const Target &)>;

} // namespace poplar

#endif
