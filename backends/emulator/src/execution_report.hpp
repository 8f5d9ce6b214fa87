// Reports of programs and of their runs for pva.
#pragma once

#include <iosfwd>
#include <map>
#include <memory>

#include <pva/pva.hpp>

#include "engine_data.hpp"

namespace poplar::core {

/// Operations as shown by pva, each once.
class ProgramTree {
public:
  explicit ProgramTree(const EngineData &engine) : engine_(engine) {}
  const std::shared_ptr<pva::Program> &of(std::uint32_t op);

private:
  const EngineData &engine_;
  std::map<std::uint32_t, std::shared_ptr<pva::Program>> made_;
};

/// Lines of Engine::reportIntervals.
void writeIntervals(std::ostream &stream, const EngineData &engine);
/// Runs and blocks of an engine with a trace.
pva::ExecutionReport executionReport(const EngineData &engine, ProgramTree &tree);

} // namespace poplar::core
