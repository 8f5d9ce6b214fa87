#include "workers.hpp"

#include <poplar/exceptions.hpp>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace poplar::core {

namespace {

struct Range {
  char *begin;
  std::vector<char> before;
  std::string name;
};

/// The memory that the workers may write, and the vertex's own state.
std::vector<Range> keep(const Superstep &step, const VertexCall &call) {
  std::vector<Range> ranges;
  for (std::uint32_t i = call.firstWritten; i < call.firstWritten + call.numWritten; ++i)
    if (char *begin = *step.written[i].slot)
      ranges.push_back({begin, std::vector<char>(begin, begin + step.written[i].bytes), step.writtenNames[i]});
  ranges.push_back({call.state, std::vector<char>(call.state, call.state + call.stateBytes), ""});
  return ranges;
}

void restore(const std::vector<Range> &ranges) {
  for (const Range &range : ranges)
    std::memcpy(range.begin, range.before.data(), range.before.size());
}

} // namespace

bool checksWorkers() {
  const char *text = std::getenv("SNNC_CHECK_WORKERS");
  return text && std::atoi(text) != 0;
}

void runApart(const Superstep &step, const VertexCall &call, unsigned workers, const std::function<void(unsigned)> &run) {
  const std::vector<Range> ranges = keep(step, call);
  std::map<std::uintptr_t, unsigned> owners;
  std::map<const char *, char> changed;
  for (unsigned worker = 0; worker < workers; ++worker) {
    run(worker);
    for (const Range &range : ranges)
      for (std::size_t i = 0; !range.name.empty() && i < range.before.size(); ++i)
        if (const char *byte = range.begin + i; *byte != range.before[i]) {
          const auto [owner, isNew] = owners.insert({reinterpret_cast<std::uintptr_t>(byte) / 4, worker});
          if (!isNew && owner->second != worker)
            throw application_runtime_error("workers " + std::to_string(owner->second) + " and " + std::to_string(worker) +
                                            " write one 32-bit word, at byte " + std::to_string(i) + " of " + range.name);
          changed[byte] = *byte;
        }
    restore(ranges);
  }
  for (unsigned worker = 0; worker < workers; ++worker)
    run(worker);
  for (const Range &range : ranges)
    for (std::size_t i = 0; !range.name.empty() && i < range.before.size(); ++i) {
      const auto apart = changed.find(range.begin + i);
      if (range.begin[i] != (apart == changed.end() ? range.before[i] : apart->second))
        throw application_runtime_error("a worker sees what another one writes: byte " + std::to_string(i) + " of " + range.name +
                                        " depends on their order");
    }
}

} // namespace poplar::core
