// Remote buffers: copies between tiles and the streaming memory of an IPU.
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "engine_data.hpp"

namespace poplar::core {

namespace {

constexpr std::uint32_t noIpu = ~0u;

/// Bytes and fragments of a tile in one copy.
struct Share {
  std::uint64_t bytes = 0;
  std::uint32_t fragments = 0;
};

std::map<std::uint32_t, Share> sharesOf(const GraphData &graph, const std::vector<Block> &blocks, std::uint32_t elementBytes,
                                        const std::string &user) {
  std::map<std::uint32_t, Share> found;
  for (const Block &b : blocks)
    forEachInterval(b, [&](Index begin, Index end) {
      forEachTile(graph, b.var, begin, end, [&] { return user; }, [&](Index first, Index last, std::uint32_t tile) {
        Share &share = found[tile];
        share.bytes += std::uint64_t(last - first) * elementBytes;
        ++share.fragments;
      });
    });
  return found;
}

/// The IPU of all these tiles, the only one that may use the buffer.
std::uint32_t ipuOf(const EngineData &engine, const std::map<std::uint32_t, Share> &shares, std::uint32_t known, const RemoteBuffer &buffer) {
  const unsigned perIpu = engine.graph->target.getTilesPerIPU();
  for (const auto &[tile, share] : shares) {
    if (known != noIpu && tile / perIpu != known)
      throw graph_connection_error("remote buffer '" + buffer.name + "' is copied to or from tiles of IPU " + std::to_string(known) +
                                   " and of IPU " + std::to_string(tile / perIpu) + "; use a buffer for each IPU");
    known = tile / perIpu;
  }
  return known;
}

void requireRoom(const Target &target, std::uint64_t bytes, const std::string &who, unsigned ipus = 1) {
  const std::uint64_t there = ipus * std::uint64_t(target.getEmulatorModel().streamingBytesPerIpu);
  if (bytes > there)
    throw stream_memory_allocation_error(who + ": " + std::to_string(bytes) + " bytes of streaming memory needed, " +
                                         (ipus == 1 ? "an IPU has " : std::to_string(ipus) + " IPUs have ") + std::to_string(there));
}

double cyclesOf(const Target &target, const std::map<std::uint32_t, Share> &shares) {
  const EmulatorModel &model = target.getEmulatorModel();
  const double width = model.exchangeBytesPerCycle > 0 ? model.exchangeBytesPerCycle : target.getExchangeBytesPerCycle();
  double bytes = 0, slowest = 0;
  for (const auto &[tile, share] : shares) {
    bytes += double(share.bytes);
    slowest = std::max(slowest, std::ceil(double(share.bytes) / width) + model.fragmentCycles * share.fragments);
  }
  return std::max(slowest, std::ceil(bytes * target.getTileClockFrequency() / model.streamingBytesPerSecond));
}

} // namespace

double remoteSyncCycles(const Target &target) {
  return target.getEmulatorModel().globalSyncCycles + target.getEmulatorModel().exchangeSetupCycles;
}

std::uint32_t remoteId(const EngineData &engine, const std::string &handle) {
  for (const RemoteBuffer &b : engine.graph->remotes)
    if (b.name == handle)
      return b.id;
  throw stream_connection_error("there is no remote buffer '" + handle + "'");
}

std::uint32_t planRemote(EngineData &engine, const ProgramData &data) {
  GraphData &graph = *engine.graph;
  if (data.remote.id >= graph.remotes.size() || data.remote != graph.remotes[data.remote.id])
    throw graph_program_compilation_error("Copy: remote buffer '" + data.remote.name + "' belongs to another graph");
  RemoteStep step;
  step.toDevice = data.kind == ProgramKind::RemoteIn;
  const Tensor &tensor = step.toDevice ? data.destination : data.source;
  step.name = data.name.empty() ? std::string(step.toDevice ? "from" : "to") + " remote buffer " + data.remote.name : data.name;
  step.remote = data.remote.id;
  step.elementBytes = std::uint32_t(data.remote.type.size());
  step.rowBytes = std::uint64_t(data.remote.elements) * step.elementBytes;
  const std::vector<Block> blocks = blocksOf(tensor.data().view);
  if (step.toDevice)
    requireWritable(graph, tensor, blocks, step.name);
  const auto shares = sharesOf(graph, blocks, step.elementBytes, step.name);
  step.ipu = engine.remoteIpus[step.remote] = ipuOf(engine, shares, engine.remoteIpus[step.remote], data.remote);
  requireRoom(graph.target, remoteBytes(engine)[step.ipu], "the remote buffers of IPU " + std::to_string(step.ipu));
  for (const auto &[tile, share] : shares)
    step.fragments.emplace_back(tile, share.fragments);
  step.transferCycles = cyclesOf(graph.target, shares);
  const Tensor flat = tensor.flatten();
  for (std::size_t begin = 0; begin < flat.numElements(); begin += data.remote.elements) {
    const Tensor row = flat.slice(begin, begin + data.remote.elements);
    step.moves.push_back(movesToBuffer(engine, blocksOf(row.data().view), engine.remotes[step.remote].data(), step.elementBytes, !step.toDevice));
  }
  if (data.hasOffset) {
    const std::vector<Block> rows = blocksOf(data.offset.data().view);
    requireMapped(graph, rows, step.name);
    step.offsets = AlignedBytes(4 * step.moves.size());
    step.offsetMoves = movesToBuffer(engine, rows, step.offsets.data(), 4, true);
  }
  engine.remoteSteps.push_back(std::move(step));
  return std::uint32_t(engine.remoteSteps.size() - 1);
}

std::vector<std::uint64_t> remoteBytes(const EngineData &engine) {
  std::vector<std::uint64_t> found(engine.graph->target.getNumIPUs());
  for (const RemoteBuffer &b : engine.graph->remotes)
    if (b.id < engine.remoteIpus.size() && engine.remoteIpus[b.id] != noIpu)
      found[engine.remoteIpus[b.id]] += std::uint64_t(b.elements) * b.repeats * b.type.size();
  return found;
}

void takeRemotes(EngineData &engine) {
  for (const RemoteBuffer &b : engine.graph->remotes) {
    const std::uint64_t bytes = std::uint64_t(b.elements) * b.repeats * b.type.size();
    requireRoom(engine.graph->target, bytes, "remote buffer '" + b.name + "'");
    engine.remotes.emplace_back(bytes);
  }
  engine.remoteIpus.assign(engine.remotes.size(), noIpu);
}

void requireRoomForRemotes(const EngineData &engine) {
  std::uint64_t all = 0;
  for (const RemoteBuffer &b : engine.graph->remotes) {
    all += std::uint64_t(b.elements) * b.repeats * b.type.size();
    requireRoom(engine.graph->target, all, "the remote buffers up to '" + b.name + "'", engine.graph->target.getNumIPUs());
  }
}

void runRemote(EngineData &engine, RemoteStep &step) {
  const RemoteBuffer &buffer = engine.graph->remotes[step.remote];
  runMoves(step.offsetMoves, 4);
  for (std::size_t i = 0; i < step.moves.size(); ++i) {
    std::uint32_t row = 0;
    if (step.offsets.size())
      std::memcpy(&row, step.offsets.data() + 4 * i, 4);
    if (row >= buffer.repeats)
      throw index_error(step.name + ": row " + std::to_string(row) + " of remote buffer '" + buffer.name + "', which has " +
                        std::to_string(buffer.repeats));
    for (Move move : step.moves[i]) {
      if (step.toDevice)
        move.source += row * step.rowBytes;
      else
        move.destination += row * step.rowBytes;
      runMove(move, step.elementBytes);
    }
  }
  ++step.executions;
  const Target &target = engine.graph->target;
  if (target.getTargetType() != TargetType::CPU)
    spend(engine, remoteSyncCycles(target) + step.transferCycles + target.getEmulatorModel().controlCycles, true);
}

} // namespace poplar::core
