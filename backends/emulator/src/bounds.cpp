#include "bounds.hpp"

#include <poplar/exceptions.hpp>

#include <cstdlib>
#include <cstring>

namespace poplar::core {

namespace {

constexpr char guard = char(0xa5);

std::size_t bytesOf(const Superstep &step, const StagedEdge &edge) {
  std::size_t elements = 0;
  for (std::uint32_t i = 0; i < edge.numStrips; ++i)
    elements += std::size_t(step.strips[edge.firstStrip + i].n0) * step.strips[edge.firstStrip + i].n1;
  return elements * edge.elementBytes;
}

/// FNV-1a.
std::uint64_t sumOf(const char *data, std::size_t bytes) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < bytes; ++i)
    sum = (sum ^ static_cast<unsigned char>(data[i])) * 0x100000001b3u;
  return sum;
}

} // namespace

bool checksBounds() {
  const char *text = std::getenv("SNNC_CHECK_BOUNDS");
  return text && std::atoi(text) != 0;
}

void setGuards(const Superstep &step, const VertexCall &call, char *scratch, std::vector<std::uint64_t> &sums) {
  sums.clear();
  for (std::uint32_t e = call.firstStaged; e < call.firstStaged + call.numStaged; ++e) {
    const StagedEdge &edge = step.staged[e];
    char *data = scratch + edge.scratchOffset;
    const std::size_t bytes = bytesOf(step, edge);
    std::memset(data - guardBytes, guard, guardBytes);
    std::memset(data + bytes, guard, guardBytes);
    sums.push_back(edge.writes ? 0 : sumOf(data, bytes));
  }
}

void checkGuards(const Superstep &step, const VertexCall &call, const char *scratch, const std::vector<std::uint64_t> &sums) {
  for (std::uint32_t e = call.firstStaged; e < call.firstStaged + call.numStaged; ++e) {
    const StagedEdge &edge = step.staged[e];
    const char *data = scratch + edge.scratchOffset;
    const std::size_t bytes = bytesOf(step, edge);
    for (std::size_t i = 0; i < guardBytes; ++i) {
      if (data[bytes + i] != guard)
        throw application_runtime_error(step.stagedNames[e] + ": written beyond its end, at byte " + std::to_string(bytes + i) + " of " +
                                        std::to_string(bytes));
      if (data[std::ptrdiff_t(i) - std::ptrdiff_t(guardBytes)] != guard)
        throw application_runtime_error(step.stagedNames[e] + ": written before its begin, " + std::to_string(guardBytes - i) + " bytes");
    }
    if (!edge.writes && sums[e - call.firstStaged] != sumOf(data, bytes))
      throw application_runtime_error(step.stagedNames[e] + " is an input and was written");
  }
}

} // namespace poplar::core
