#include "spoil.hpp"

#include <cstdlib>
#include <cstring>

#include "engine_data.hpp"

namespace poplar::core {

bool spoilsDead() {
  const char *text = std::getenv("SNNC_SPOIL_DEAD");
  return text && *text && std::strcmp(text, "0") != 0;
}

void planSpoiling(EngineData &engine, const Usage &usage, const Liveness &liveness) {
  const Set none(usage.variables.size());
  std::vector<Set> during(engine.ops.size(), none), after(engine.ops.size(), none);
  liveness.walk([&](std::uint32_t, std::uint32_t op, const Set &here, const Set &behind) {
    during[op] |= here;
    after[op] |= behind;
  });
  engine.dying.resize(engine.ops.size());
  for (std::uint32_t op = 0; op < engine.ops.size(); ++op)
    (during[op] - after[op]).each([&](std::size_t number) { engine.dying[op].push_back(usage.variables[number]); });
  for (std::uint32_t number = 0; number < usage.variables.size(); ++number)
    if (!liveness.between().has(number))
      engine.deadAtStart.push_back(usage.variables[number]);
}

void spoil(EngineData &engine, const std::vector<std::uint32_t> &variables) {
  for (std::uint32_t v : variables)
    std::memset(engine.storage.base(v), 0xff, std::size_t(engine.graph->variables[v].elements) * engine.graph->variables[v].type.size());
}

} // namespace poplar::core
