// Lowering of programs to flat operations, with a plan for every copy, stream and print.
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine_data.hpp"

namespace poplar::core {

void requireMapped(const GraphData &graph, const std::vector<Block> &blocks, const std::string &user) {
  for (const Block &b : blocks)
    forEachInterval(b, [&](Index begin, Index end) {
      forEachTile(graph, b.var, begin, end, [&] { return user; }, [](Index, Index, std::uint32_t) {});
    });
}

namespace {
void requireVariables(const GraphData &graph, const std::vector<Block> &blocks, const std::string &user) {
  for (const Block &b : blocks)
    if (graph.variables[b.var].constant)
      throw graph_connection_error(user + " writes constant '" + graph.variables[b.var].name + "'");
}
} // namespace

void requireWritable(const GraphData &graph, const Tensor &tensor, const std::vector<Block> &blocks, const std::string &user) {
  requireVariables(graph, blocks, user);
  if (tensor.containsAliases())
    throw graph_connection_error(user + " writes an element of '" + tensor.getName() + "' twice");
}

std::vector<Move> movesToBuffer(const EngineData &engine, const std::vector<Block> &blocks, char *buffer, std::uint32_t bytes, bool toBuffer) {
  Index n = 0;
  for (const Block &b : blocks)
    n += b.size();
  if (n == 0)
    return {};
  const std::vector<Block> flat{{0, std::uint32_t(n), 1, 0, 1, 0}};
  const Side device{&blocks, engine.storage.bases()}, host{&flat, &buffer};
  return toBuffer ? planMoves(host, device, bytes) : planMoves(device, host, bytes);
}

namespace {

char *addressOf(const EngineData &engine, const Tensor &tensor) {
  const std::vector<Block> blocks = blocksOf(tensor.data().view);
  return engine.storage.base(blocks.at(0).var) + blocks[0].start * Index(tensor.elementType().size());
}

std::vector<Block> blocksOrNone(const Tensor &tensor) { return tensor.valid() ? blocksOf(tensor.data().view) : std::vector<Block>{}; }

/// A cursor over the contiguous element ranges of blocks in order.
class RangeCursor {
public:
  explicit RangeCursor(const std::vector<Block> &blocks) : blocks_(blocks) {}
  std::uint32_t var() const { return blocks_[block_].var; }
  Index begin() const { return blocks_[block_].start + row_ * blocks_[block_].s1 + column_ * blocks_[block_].s0; }
  Index length() const {
    const Block &b = blocks_[block_];
    return b.n0 == 1 || b.s0 != 1 ? 1 : b.n0 - column_;
  }
  bool done() const { return block_ >= blocks_.size(); }
  void advance(Index n) {
    column_ += n;
    if (column_ < blocks_[block_].n0)
      return;
    column_ = 0;
    if (++row_ == blocks_[block_].n1) {
      row_ = 0;
      ++block_;
    }
  }

private:
  const std::vector<Block> &blocks_;
  std::size_t block_ = 0;
  Index row_ = 0, column_ = 0;
};

class Lowering {
public:
  explicit Lowering(EngineData &engine) : engine_(engine), graph_(*engine.graph) {}

  std::uint32_t lower(const program::Program &program) {
    const ProgramData *data = program.data().get();
    const auto found = done_.find(data);
    if (found != done_.end())
      return found->second;
    Op op;
    op.kind = data->kind;
    op.number = data->number;
    op.message = data->name;
    op.cases = data->cases;
    op.hasDefault = data->hasDefault;
    op.source = data->source;
    op.destination = data->destination;
    op.offset = data->offset;
    requireOwnTensors(*data);
    lowerStep(*data, op);
    for (const program::Program &child : data->children)
      op.children.push_back(lower(child));
    const std::uint32_t number = std::uint32_t(engine_.ops.size());
    engine_.ops.push_back(std::move(op));
    if (engine_.undefined)
      engine_.touched[number] = {blocksOrNone(data->source), blocksOrNone(data->destination)};
    done_[data] = number;
    kept_.push_back(program);
    return number;
  }

private:
  void requireOwnTensors(const ProgramData &data) const {
    for (const Tensor *tensor : {&data.source, &data.destination, &data.offset})
      if (tensor->valid())
        requireOwn(graph_, *tensor, data.name.empty() ? "a program" : "program '" + data.name + "'");
  }

  void lowerStep(const ProgramData &data, Op &op) {
    switch (data.kind) {
    case ProgramKind::Execute:
      op.number = superstep(data.number);
      break;
    case ProgramKind::Call:
      op.children.push_back(function(data.number));
      break;
    case ProgramKind::Copy:
      op.number = copy(data);
      break;
    case ProgramKind::StreamIn:
    case ProgramKind::StreamOut:
      op.number = stream(data);
      break;
    case ProgramKind::RemoteIn:
    case ProgramKind::RemoteOut:
      op.number = planRemote(engine_, data);
      break;
    case ProgramKind::Print:
    case ProgramKind::Error:
      op.number = print(data);
      break;
    case ProgramKind::CrossReplica:
    case ProgramKind::AssumeEqual:
      op.number = crossing(data);
      break;
    case ProgramKind::CycleStamp:
      op.stamp = addressOf(engine_, data.destination);
      op.since = data.source.valid() ? addressOf(engine_, data.source) : nullptr;
      break;
    case ProgramKind::WriteUndef:
      requireVariables(graph_, blocksOf(data.destination.data().view), "WriteUndef");
      break;
    case ProgramKind::WhileTrue:
    case ProgramKind::WhileFalse:
    case ProgramKind::If:
    case ProgramKind::Switch:
    case ProgramKind::AbortIf:
      requireMapped(graph_, blocksOf(data.source.data().view), "a predicate");
      op.predicate = addressOf(engine_, data.source);
      op.predicateType = data.source.elementType();
      break;
    default:
      break;
    }
  }

  std::uint32_t superstep(std::uint32_t computeSet) {
    if (computeSet >= graph_.computeSets.size())
      throw graph_program_compilation_error("Execute of a compute set that belongs to no graph");
    for (std::uint32_t i = 0; i < engine_.supersteps.size(); ++i)
      if (engine_.supersteps[i]->computeSet == computeSet)
        return i;
    engine_.supersteps.push_back(planSuperstep(graph_, computeSet, engine_.storage));
    return std::uint32_t(engine_.supersteps.size() - 1);
  }

  std::uint32_t function(std::uint32_t number) {
    if (number >= graph_.functions.size())
      throw graph_program_compilation_error("Call of a function that belongs to no graph");
    if (!open_.insert(number).second)
      throw graph_recursion_error("function " + std::to_string(number) + " calls itself");
    const std::uint32_t op = lower(graph_.functions[number]);
    open_.erase(number);
    return op;
  }

  std::uint32_t copy(const ProgramData &data) {
    CopyStep step;
    step.name = data.name.empty() ? "copy " + data.source.getName() + " to " + data.destination.getName() : data.name;
    step.elementBytes = std::uint32_t(data.source.elementType().size());
    const std::vector<Block> from = blocksOf(data.source.data().view), to = blocksOf(data.destination.data().view);
    requireMapped(graph_, from, step.name);
    requireMapped(graph_, to, step.name);
    requireWritable(graph_, data.destination, to, step.name);
    std::set<std::uint32_t> sources;
    for (const Block &b : from)
      sources.insert(b.var);
    const bool shared = std::any_of(to.begin(), to.end(), [&](const Block &b) { return sources.count(b.var) != 0; });
    if (shared) {
      step.buffer = AlignedBytes(data.source.numElements() * step.elementBytes);
      step.moves = movesToBuffer(engine_, from, step.buffer.data(), step.elementBytes, true);
      step.secondMoves = movesToBuffer(engine_, to, step.buffer.data(), step.elementBytes, false);
    } else {
      step.moves = planMoves({&to, engine_.storage.bases()}, {&from, engine_.storage.bases()}, step.elementBytes);
    }
    planCopyExchange(from, to, step);
    engine_.copies.push_back(std::move(step));
    return std::uint32_t(engine_.copies.size() - 1);
  }

  void planCopyExchange(const std::vector<Block> &from, const std::vector<Block> &to, CopyStep &step) const {
    std::vector<Transfer> transfers;
    std::map<std::uint32_t, std::uint64_t> localBytes;
    const auto user = [] { return std::string("a copy"); };
    RangeCursor s(from), d(to);
    while (!s.done() && !d.done()) {
      const Index n = std::min(s.length(), d.length());
      forEachTile(graph_, s.var(), s.begin(), s.begin() + n, user, [&](Index a, Index b, std::uint32_t sourceTile) {
        const Index shift = d.begin() - s.begin();
        forEachTile(graph_, d.var(), a + shift, b + shift, user, [&](Index x, Index y, std::uint32_t tile) {
          if (tile == sourceTile)
            localBytes[tile] += std::uint64_t(y - x) * step.elementBytes;
          else
            transfers.push_back({sourceTile, tile, s.var(), d.var(), x - shift, x, y - x});
        });
      });
      s.advance(n);
      d.advance(n);
    }
    const EmulatorModel &model = graph_.target.getEmulatorModel();
    for (const auto &entry : localBytes)
      step.localCycles = std::max(step.localCycles, model.localCopyCycles + std::ceil(double(entry.second) / model.localCopyBytesPerCycle));
    step.exchange = planExchange(graph_, std::move(transfers));
  }

  std::uint32_t stream(const ProgramData &data) {
    const bool in = data.kind == ProgramKind::StreamIn;
    const Tensor &tensor = in ? data.destination : data.source;
    StreamStep step;
    step.name = "stream " + data.stream.name;
    step.stream = data.stream.id;
    step.toDevice = in;
    step.elementBytes = std::uint32_t(tensor.elementType().size());
    step.bytes = std::uint64_t(tensor.numElements()) * step.elementBytes;
    step.buffer = AlignedBytes(step.bytes);
    const std::vector<Block> blocks = blocksOf(tensor.data().view);
    requireMapped(graph_, blocks, step.name);
    if (in)
      requireWritable(graph_, tensor, blocks, step.name);
    step.moves = movesToBuffer(engine_, blocks, step.buffer.data(), step.elementBytes, !in);
    engine_.streamSteps.push_back(std::move(step));
    return std::uint32_t(engine_.streamSteps.size() - 1);
  }

  std::uint32_t crossing(const ProgramData &data) {
    CrossStep step;
    step.name = data.name.empty() ? "'" + data.source.getName() + "'" : data.name;
    step.elementBytes = std::uint32_t(data.source.elementType().size());
    step.replicas = data.replicas;
    step.buffer = AlignedBytes(data.source.numElements() * step.elementBytes);
    const std::vector<Block> from = blocksOf(data.source.data().view);
    requireMapped(graph_, from, step.name);
    step.toBuffer = movesToBuffer(engine_, from, step.buffer.data(), step.elementBytes, true);
    if (data.destination.valid()) {
      const std::vector<Block> to = blocksOf(data.destination.data().view);
      requireMapped(graph_, to, step.name);
      requireWritable(graph_, data.destination, to, step.name);
      step.fromBuffer = movesToBuffer(engine_, to, step.buffer.data(), step.elementBytes, false);
      const EmulatorModel &model = graph_.target.getEmulatorModel();
      step.cycles = model.globalSyncCycles + model.exchangeSetupCycles + model.controlCycles +
                    std::ceil(double(step.buffer.size()) * graph_.target.getTileClockFrequency() / model.linkBytesPerSecond);
    }
    engine_.crossings.push_back(std::move(step));
    return std::uint32_t(engine_.crossings.size() - 1);
  }

  std::uint32_t print(const ProgramData &data) {
    PrintStep step;
    step.format = data.format;
    step.title = data.name;
    step.type = data.source.elementType();
    step.shape = data.source.shape();
    step.buffer = AlignedBytes(data.source.numElements() * step.type.size());
    const std::vector<Block> blocks = blocksOf(data.source.data().view);
    requireMapped(graph_, blocks, "PrintTensor '" + data.name + "'");
    step.moves = movesToBuffer(engine_, blocks, step.buffer.data(), std::uint32_t(step.type.size()), true);
    engine_.prints.push_back(std::move(step));
    return std::uint32_t(engine_.prints.size() - 1);
  }

  EngineData &engine_;
  GraphData &graph_;
  std::map<const ProgramData *, std::uint32_t> done_;
  /// Prevents the reuse of addresses that are keys of done_.
  std::vector<program::Program> kept_;
  std::set<std::uint32_t> open_;
};

} // namespace

void lowerPrograms(EngineData &engine, ArrayRef<program::Program> programs) {
  Lowering lowering(engine);
  for (const program::Program &program : programs)
    engine.programs.push_back(lowering.lower(program));
}

void planHandles(EngineData &engine) {
  for (const auto &entry : engine.graph->handles) {
    const Tensor tensor(std::make_shared<const TensorData>(entry.second.tensor));
    const std::vector<Block> blocks = blocksOf(tensor.data().view);
    requireMapped(*engine.graph, blocks, "host access '" + entry.first + "'");
    HostAccess access;
    access.read = entry.second.read;
    access.write = entry.second.write;
    access.elementBytes = std::uint32_t(tensor.elementType().size());
    access.bytes = std::uint64_t(tensor.numElements()) * access.elementBytes;
    access.tensor = tensor.getDebugStr();
    if (engine.undefined)
      access.blocks = blocks;
    access.buffer = AlignedBytes(access.bytes);
    access.toHost = movesToBuffer(engine, blocks, access.buffer.data(), access.elementBytes, true);
    if (access.write) {
      requireWritable(*engine.graph, tensor, blocks, "host access '" + entry.first + "'");
      access.toDevice = movesToBuffer(engine, blocks, access.buffer.data(), access.elementBytes, false);
    }
    engine.handles.emplace(entry.first, std::move(access));
  }
}

} // namespace poplar::core
