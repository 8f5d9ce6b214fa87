// Execution reports, from the records of runs.
#include "execution_report.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <regex>

namespace poplar::core {

namespace {

using Kind = pva::Program::Type;

Kind typeOf(ProgramKind kind) {
  switch (kind) {
  case ProgramKind::Sequence:
    return Kind::Sequence;
  case ProgramKind::Repeat:
    return Kind::Repeat;
  case ProgramKind::WhileTrue:
  case ProgramKind::WhileFalse:
    return Kind::RepeatWhile;
  case ProgramKind::If:
    return Kind::If;
  case ProgramKind::Switch:
    return Kind::Switch;
  case ProgramKind::Call:
    return Kind::Call;
  case ProgramKind::Execute:
    return Kind::OnTileExecute;
  case ProgramKind::Copy:
  case ProgramKind::CrossReplica:
    return Kind::DoExchange;
  case ProgramKind::StreamIn:
  case ProgramKind::StreamOut:
    return Kind::StreamCopyMid;
  case ProgramKind::RemoteIn:
  case ProgramKind::RemoteOut:
    return Kind::RemoteCopy;
  case ProgramKind::Sync:
    return Kind::Sync;
  case ProgramKind::WriteUndef:
    return Kind::WriteUndef;
  case ProgramKind::Print:
    return Kind::PrintTensor;
  case ProgramKind::Abort:
  case ProgramKind::AbortIf:
    return Kind::Abort;
  default:
    return Kind::Unknown;
  }
}

pva::ComputeSetRun computeSetOf(const EngineData &engine, const Superstep &step) {
  pva::ComputeSetRun run;
  run.name_ = step.name;
  run.cycles_.resize(engine.graph->target.getNumTiles());
  for (std::size_t g = 0; g < step.groups.size(); ++g)
    run.cycles_[step.groups[g].tile] += std::uint64_t(std::llround(step.groupCycles[g] / double(std::max<std::uint64_t>(1, step.executions))));
  return run;
}

pva::ExecutionStep stepOf(const EngineData &engine, const TraceEntry &entry, const std::shared_ptr<pva::Program> &program) {
  pva::ExecutionStep step;
  step.program_ = program;
  step.ipus_.resize(engine.graph->target.getNumIPUs());
  for (pva::IpuStep &ipu : step.ipus_)
    ipu.cycles_ = std::uint64_t(std::llround(entry.to - entry.from));
  const Op &op = engine.ops[entry.op];
  if (op.kind == ProgramKind::Execute)
    step.computeSets_.push_back(computeSetOf(engine, *engine.supersteps[op.number]));
  return step;
}

/// A field of comma-separated values.
std::string csvField(const std::string &text) {
  std::string field = "\"";
  for (const char c : text)
    field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

const char *intervalKind(ProgramKind kind) {
  switch (kind) {
  case ProgramKind::Execute:
    return "compute";
  case ProgramKind::Copy:
  case ProgramKind::CrossReplica:
    return "exchange";
  case ProgramKind::StreamIn:
  case ProgramKind::StreamOut:
  case ProgramKind::RemoteIn:
  case ProgramKind::RemoteOut:
    return "host";
  default:
    return "sync";
  }
}

/// The lines of one step: of each tile that computed, or of all tiles.
void writeIntervals(std::ostream &stream, const EngineData &engine, const TraceEntry &entry) {
  const Op &op = engine.ops[entry.op];
  const std::string *step = stepName(engine, op);
  const std::string rest = std::string(",") + intervalKind(op.kind) + "," + csvField(step ? *step : op.message) + "\n";
  const std::uint64_t from = std::uint64_t(std::llround(entry.from)), to = std::uint64_t(std::llround(entry.to));
  if (op.kind != ProgramKind::Execute) {
    stream << from << "," << to << ",all" << rest;
    return;
  }
  const std::vector<std::uint64_t> cycles = computeSetOf(engine, *engine.supersteps[op.number]).cycles_;
  for (std::size_t tile = 0; tile < cycles.size(); ++tile)
    if (cycles[tile])
      stream << from << "," << std::min(to, from + cycles[tile]) << "," << tile << rest;
}

bool holdsOthers(Kind type) { return type >= Kind::Sequence && type <= Kind::Call; }

} // namespace

std::unique_ptr<Trace> traceOf(const OptionFlags &options) {
  std::unique_ptr<Trace> trace;
  Trace found;
  for (const auto &option : options) {
    const std::string &name = option.first, &value = option.second;
    const bool instruments = name.rfind("debug.instrument", 0) == 0 || name == "autoReport.all" || name == "autoReport.outputExecutionProfile";
    if (!(instruments && value == "true") && name.rfind("profiler.", 0) != 0)
      continue;
    if (name == "profiler.blocks.filter")
      found.sequences = value;
    if (name == "profiler.programs.filter")
      found.programs = value;
    trace = std::make_unique<Trace>();
  }
  if (trace)
    *trace = std::move(found);
  return trace;
}

const std::shared_ptr<pva::Program> &ProgramTree::of(std::uint32_t number) {
  std::shared_ptr<pva::Program> &made = made_[number];
  if (made)
    return made;
  made = std::make_shared<pva::Program>();
  const Op &op = engine_.ops[number];
  made->type_ = typeOf(op.kind);
  const std::string *step = stepName(engine_, op);
  made->name_ = step ? *step : op.message;
  // A reference into the map stays valid while it grows.
  for (const std::uint32_t child : op.children)
    made->children_.push_back(of(child));
  return made;
}

void writeIntervals(std::ostream &stream, const EngineData &engine) {
  stream << "begin,end,tile,kind,name\n";
  if (engine.trace)
    for (const TraceRun &run : engine.trace->runs)
      for (const TraceEntry &entry : run.entries)
        if (!holdsOthers(typeOf(engine.ops[entry.op].kind)))
          writeIntervals(stream, engine, entry);
}

pva::ExecutionReport executionReport(const EngineData &engine, ProgramTree &tree) {
  pva::ExecutionReport report;
  const std::regex sequences(engine.trace->sequences), programs(engine.trace->programs);
  for (const TraceRun &run : engine.trace->runs) {
    report.runs_.emplace_back();
    report.runs_.back().name_ = run.name;
    for (const TraceEntry &entry : run.entries) {
      const std::shared_ptr<pva::Program> &program = tree.of(entry.op);
      const bool inner = holdsOthers(program->type()), stream = program->type() == Kind::StreamCopyMid;
      if (!inner)
        report.runs_.back().steps_.push_back(stepOf(engine, entry, program));
      if (!stream && (program->name().empty() || !std::regex_search(program->name(), inner ? sequences : programs)))
        continue;
      report.blocks_.emplace_back();
      report.blocks_.back().from_ = std::uint64_t(std::llround(entry.from));
      report.blocks_.back().to_ = std::uint64_t(std::llround(entry.to));
      report.blocks_.back().program_ = program;
    }
  }
  std::stable_sort(report.blocks_.begin(), report.blocks_.end(), [](const pva::Block &a, const pva::Block &b) {
    return a.from_ != b.from_ ? a.from_ < b.from_ : a.to_ > b.to_;
  });
  return report;
}

} // namespace poplar::core
