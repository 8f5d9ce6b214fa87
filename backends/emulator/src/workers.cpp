#include "workers.hpp"

#include <poplar/exceptions.hpp>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace poplar::core {

namespace {

struct Range {
  char *begin;
  std::vector<char> before;
};

std::vector<Range> keep(const std::vector<WrittenEdge> &written, const VertexCall &call) {
  std::vector<Range> ranges;
  for (std::uint32_t i = call.firstWritten; i < call.firstWritten + call.numWritten; ++i)
    if (char *begin = *written[i].slot)
      ranges.push_back({begin, std::vector<char>(begin, begin + written[i].bytes)});
  return ranges;
}

} // namespace

bool checksWorkers() {
  const char *text = std::getenv("SNNC_CHECK_WORKERS");
  return text && std::atoi(text) != 0;
}

void runApart(const std::vector<WrittenEdge> &written, const VertexCall &call, unsigned workers, const std::function<void(unsigned)> &run) {
  const std::vector<Range> ranges = keep(written, call);
  std::map<std::uintptr_t, unsigned> owners;
  std::map<char *, char> changed;
  for (unsigned worker = 0; worker < workers; ++worker) {
    run(worker);
    for (const Range &range : ranges)
      for (std::size_t i = 0; i < range.before.size(); ++i)
        if (char *byte = range.begin + i; *byte != range.before[i]) {
          const auto [owner, isNew] = owners.insert({reinterpret_cast<std::uintptr_t>(byte) / 4, worker});
          if (!isNew && owner->second != worker)
            throw application_runtime_error("workers " + std::to_string(owner->second) + " and " + std::to_string(worker) +
                                            " of a MultiVertex write one 32-bit word");
          changed[byte] = *byte;
        }
    for (const Range &range : ranges)
      std::memcpy(range.begin, range.before.data(), range.before.size());
  }
  for (const auto &[byte, value] : changed)
    *byte = value;
}

} // namespace poplar::core
