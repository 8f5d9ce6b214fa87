// The public interface of an engine.
#include <poplar/Engine.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "engine_data.hpp"
#include "execution_report.hpp"
#include "options.hpp"
#include "spoil.hpp"

namespace poplar {

namespace core {

const std::string *stepName(const EngineData &engine, const Op &op) {
  switch (op.kind) {
  case ProgramKind::Execute:
    return &engine.supersteps[op.number]->name;
  case ProgramKind::Copy:
    return &engine.copies[op.number].name;
  case ProgramKind::StreamIn:
  case ProgramKind::StreamOut:
    return &engine.streamSteps[op.number].name;
  case ProgramKind::RemoteIn:
  case ProgramKind::RemoteOut:
    return &engine.remoteSteps[op.number].name;
  default:
    return nullptr;
  }
}

EngineData::EngineData(std::shared_ptr<GraphData> graphData)
    : graph(std::move(graphData)), storage(*graph), connections(graph->streams.size()), executor(graph->target), printStream(&std::cerr) {}

namespace {

/// Constants created for one field are stored on the tile of its vertex.
void mapOwnedConstants(GraphData &graph) {
  for (Variable &v : graph.variables)
    if (v.owner != ~0u && graph.vertices[v.owner].tile != ~0u)
      v.tiles.assign(0, v.elements, graph.vertices[v.owner].tile);
}

std::uint32_t streamId(const EngineData &engine, const std::string &handle) {
  for (const DataStream &s : engine.graph->streams)
    if (s.name == handle)
      return s.id;
  throw stream_connection_error("there is no stream '" + handle + "'");
}

HostAccess &accessOf(EngineData &engine, const std::string &handle, bool write) {
  const auto found = engine.handles.find(handle);
  if (found == engine.handles.end() || !(write ? found->second.write : found->second.read))
    throw stream_connection_error("no host " + std::string(write ? "write" : "read") + " was created for handle '" + handle + "'");
  return found->second;
}

void requireSize(const HostAccess &access, const std::string &handle, std::ptrdiff_t bytes, std::size_t replicas) {
  if (bytes < 0 || std::uint64_t(bytes) != access.bytes * replicas)
    throw stream_connection_error("handle '" + handle + "' of " + access.tensor + " takes " + std::to_string(access.bytes * replicas) +
                                  " bytes, not " + std::to_string(bytes));
}

bool isSet(const char *variable) {
  const char *text = std::getenv(variable);
  return text && std::atoi(text) != 0;
}

/// Whether tiles may exceed their memory, an option as in Graphcore's model.
bool allowsTooMuch(const OptionFlags &options) {
  return isSet("SNNC_LENIENT_MEMORY") || (options.contains("debug.allowOutOfMemory") && options.at("debug.allowOutOfMemory") == "true");
}

/// A separate buffer for each stream lets the host run ahead, unless this is disabled; with threads for callbacks, while the device runs.
Prefetch prefetchOf(const OptionFlags &options) {
  const auto is = [&](const char *option, const char *value) { return options.contains(option) && options.at(option) == value; };
  if (!is("exchange.streamBufferOverlap", "none") || is("exchange.enablePrefetch", "false"))
    return Prefetch::Never;
  const char *mode = "streamCallbacks.multiThreadMode", *workers = "streamCallbacks.numWorkerThreads";
  const bool threads = (is(mode, "collaborative") || is(mode, "dedicated")) && options.contains(workers) && !is(workers, "0");
  return threads ? Prefetch::OnThread : Prefetch::Now;
}

/// The path of the profile written when the engine ends: $SNNC_PROFILE, or from the autoReport options; otherwise empty.
std::string profilePath(const OptionFlags &options) {
  if (const char *path = std::getenv("SNNC_PROFILE"))
    return path;
  const auto wants = [&](const char *option) { return options.contains(option) && options.at(option) == "true"; };
  if (!wants("autoReport.all") && !wants("autoReport.outputExecutionProfile"))
    return "";
  return (options.contains("autoReport.directory") ? options.at("autoReport.directory") : std::string(".")) + "/profile.json";
}

/// Writes the profile and creates its folder; with an autoReport option also under the file name that Poplar uses. It is called by a
/// destructor, so a failure is only a warning.
void writeProfile(EngineData &engine) {
  const std::filesystem::path path = engine.profilePath;
  std::error_code failed;
  if (path.has_parent_path())
    std::filesystem::create_directories(path.parent_path(), failed);
  std::ofstream file(path);
  if (!(file << collectProfile(engine).toJson() << "\n" << std::flush)) {
    std::cerr << "warning: the profile could not be written to " << path.string() << "\n";
    return;
  }
  if (!std::getenv("SNNC_PROFILE"))
    std::filesystem::copy_file(path, path.parent_path() / "profile.pop", std::filesystem::copy_options::overwrite_existing, failed);
}

std::unique_ptr<EngineData> makeEngine(const std::shared_ptr<GraphData> &graph, ArrayRef<program::Program> programs, bool lenient) {
  auto engine = std::make_unique<EngineData>(graph);
  takeRemotes(*engine);
  if (checksUndefined())
    engine->undefined = std::make_unique<UndefinedElements>(*graph);
  lowerPrograms(*engine, programs);
  requireRoomForRemotes(*engine);
  planTransfers(*engine);
  for (const auto &step : engine->supersteps)
    engine->executor.reserve(*step);
  planHandles(*engine);
  try {
    accountMemory(*engine);
  } catch (const graph_memory_allocation_error &error) {
    if (!lenient)
      throw;
    std::cerr << "warning: " << error.what() << "\n";
  }
  return engine;
}

void initialise(EngineData &engine) {
  engine.storage.initialise(*engine.graph);
  spoil(engine, engine.deadAtStart);
  if (engine.undefined)
    engine.undefined->clear();
  for (std::uint32_t variable : engine.graph->replicaIndices)
    std::memcpy(engine.storage.base(variable), &engine.replica, sizeof engine.replica);
  for (const auto &step : engine.supersteps)
    std::copy(step->initialStates.begin(), step->initialStates.end(), step->states.data());
}

} // namespace
} // namespace core

Engine::Engine(const Graph &graph, const program::Program &program, const OptionFlags &options)
    : Engine(graph, ArrayRef<program::Program>(&program, 1), options) {}

Engine::Engine(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &options) {
  build(graph.sharedData(), programs, options);
}

Engine::Engine(const Executable &executable, const OptionFlags &options) {
  if (!executable.valid())
    throw runtime_error("an engine was made from an executable that holds nothing");
  OptionFlags merged = executable.options();
  for (const auto &flag : options)
    merged.set(flag.first, flag.second);
  build(executable.graph(), executable.programs(), merged);
}

void Engine::build(std::shared_ptr<core::GraphData> graph, ArrayRef<program::Program> programs, const OptionFlags &given) {
  const OptionFlags options = core::engineOptions(given);
  core::mapOwnedConstants(*graph);
  const bool lenient = core::allowsTooMuch(options);
  data_ = core::makeEngine(graph, programs, lenient);
  for (unsigned replica = 1; replica < graph->replicas; ++replica)
    data_->others.push_back(core::makeEngine(graph, programs, lenient));
  data_->replicas = {data_.get()};
  for (const auto &other : data_->others)
    data_->replicas.push_back(other.get());
  for (unsigned replica = 0; replica < data_->replicas.size(); ++replica) {
    data_->replicas[replica]->replica = replica;
    data_->replicas[replica]->replicas = data_->replicas;
  }
  data_->profilePath = core::profilePath(options);
  data_->trace = core::traceOf(options);
  for (core::EngineData *replica : data_->replicas)
    replica->prefetch = core::prefetchOf(options);
}

Executable compileGraph(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &options, ProgressFunc progress,
                        const DebugContext &) {
  // Conditions that an engine would refuse are refused here.
  Engine(graph, programs, options);
  if (progress)
    progress(1, 1);
  return Executable(graph.sharedData(), programs.cloneAsVector(), options);
}

Engine::Engine(Engine &&) noexcept = default;
Engine &Engine::operator=(Engine &&) noexcept = default;
Engine::~Engine() {
  if (data_ && data_->loaded && !data_->profilePath.empty())
    core::writeProfile(*data_);
}

void Engine::load(const Device &device) {
  const Target &ours = data_->graph->target, &theirs = device.getTarget();
  const unsigned replicas = data_->graph->replicas;
  if (ours.getNumTiles() * replicas != theirs.getNumTiles() || ours.getNumIPUs() * replicas != theirs.getNumIPUs())
    throw invalid_machine_model("the graph was built for " + std::to_string(ours.getNumTiles() * replicas) + " tiles, the device has " +
                                std::to_string(theirs.getNumTiles()));
  for (core::EngineData *replica : data_->replicas)
    core::initialise(*replica);
  data_->loaded = true;
}

void Engine::run(unsigned program, const std::string &debugName) {
  if (program >= data_->programs.size())
    throw index_error("run(" + std::to_string(program) + "): the engine has " + std::to_string(data_->programs.size()) + " programs");
  if (!data_->loaded)
    throw runtime_error("run: the engine is not loaded on a device");
  for (core::EngineData *replica : data_->replicas) {
    replica->runCycles = replica->transfers.lastRun = replica->transfers.besideLastRun = 0;
    core::awaitTransfers(*replica);
  }
  if (data_->trace)
    data_->trace->runs.push_back({program, debugName, {}});
  core::runOp(*data_, data_->programs[program]);
  for (core::EngineData *replica : data_->replicas)
    replica->totalCycles += replica->runCycles;
}

void Engine::connectStream(const std::string &handle, void *begin, void *end) {
  const std::uint32_t id = core::streamId(*data_, handle);
  const DataStream &stream = data_->graph->streams[id];
  const std::ptrdiff_t bytes = static_cast<char *>(end) - static_cast<char *>(begin);
  const std::ptrdiff_t unit = std::ptrdiff_t(stream.elements * stream.type.size());
  if (bytes <= 0 || unit == 0 || bytes % unit != 0)
    throw stream_connection_error("stream '" + handle + "' moves " + std::to_string(unit) + " bytes at a time; a buffer of " +
                                  std::to_string(bytes) + " bytes is no multiple of that");
  core::StreamConnection connection;
  connection.begin = connection.next = static_cast<char *>(begin);
  connection.end = static_cast<char *>(end);
  data_->connections[id] = connection;
}

void Engine::connectStream(const std::string &handle, void *pointer) {
  core::StreamConnection connection;
  connection.begin = connection.next = static_cast<char *>(pointer);
  connection.fixed = true;
  data_->connections[core::streamId(*data_, handle)] = connection;
}

void Engine::connectStreamToCallback(const std::string &handle, StreamCallbackHandle callback) {
  core::StreamConnection connection;
  connection.callback = std::move(callback);
  data_->connections[core::streamId(*data_, handle)] = connection;
}

void Engine::connectStreamToCallback(const std::string &handle, unsigned replica, StreamCallbackHandle callback) {
  if (replica >= data_->replicas.size())
    throw stream_connection_error("stream '" + handle + "': there is no replica " + std::to_string(replica));
  core::StreamConnection &connection = data_->connections[core::streamId(*data_, handle)];
  connection.byReplica.erase(replica);
  connection.byReplica.emplace(replica, std::move(callback));
}

void Engine::disconnectStream(const std::string &handle) { data_->connections[core::streamId(*data_, handle)] = {}; }

void Engine::readTensor(const std::string &handle, void *begin, void *end) {
  core::requireSize(core::accessOf(*data_, handle, false), handle, static_cast<char *>(end) - static_cast<char *>(begin),
                    data_->replicas.size());
  char *to = static_cast<char *>(begin);
  for (core::EngineData *replica : data_->replicas) {
    core::HostAccess &access = core::accessOf(*replica, handle, false);
    if (replica->undefined)
      replica->undefined->require(access.blocks, [&] { return "host access '" + handle + "'"; });
    core::runMoves(access.toHost, access.elementBytes);
    if (access.bytes)
      std::memcpy(to, access.buffer.data(), access.bytes);
    to += access.bytes;
  }
}

void Engine::writeTensor(const std::string &handle, const void *begin, const void *end) {
  core::requireSize(core::accessOf(*data_, handle, true), handle, static_cast<const char *>(end) - static_cast<const char *>(begin),
                    data_->replicas.size());
  const char *from = static_cast<const char *>(begin);
  for (core::EngineData *replica : data_->replicas) {
    core::HostAccess &access = core::accessOf(*replica, handle, true);
    if (access.bytes)
      std::memcpy(access.buffer.data(), from, access.bytes);
    core::runMoves(access.toDevice, access.elementBytes);
    if (replica->undefined)
      replica->undefined->define(access.blocks);
    from += access.bytes;
  }
}

void Engine::readTensor(const std::string &handle, void *values) {
  readTensor(handle, values, static_cast<char *>(values) + core::accessOf(*data_, handle, false).bytes * data_->replicas.size());
}

void Engine::writeTensor(const std::string &handle, const void *values) {
  writeTensor(handle, values, static_cast<const char *>(values) + core::accessOf(*data_, handle, true).bytes * data_->replicas.size());
}

namespace core {
namespace {
/// A row of a remote buffer; throws if it does not exist.
char *rowOf(const EngineData &engine, const std::string &handle, std::uint64_t row, unsigned replica, const char *who) {
  const std::uint32_t id = remoteId(engine, handle);
  const RemoteBuffer &buffer = engine.graph->remotes[id];
  if (row >= buffer.repeats)
    throw index_error(std::string(who) + ": row " + std::to_string(row) + " of remote buffer '" + handle + "', which has " +
                      std::to_string(buffer.repeats));
  if (replica >= engine.replicas.size())
    throw index_error(std::string(who) + ": replica " + std::to_string(replica) + " of remote buffer '" + handle + "'; the graph has " +
                      std::to_string(engine.replicas.size()));
  if (!engine.loaded)
    throw runtime_error(std::string(who) + ": the engine is not loaded on a device");
  return engine.replicas[replica]->remotes[id].data() + row * buffer.elements * buffer.type.size();
}

std::size_t rowBytes(const EngineData &engine, const std::string &handle) {
  const RemoteBuffer &buffer = engine.graph->remotes[remoteId(engine, handle)];
  return buffer.elements * buffer.type.size();
}
} // namespace
} // namespace core

void Engine::copyToRemoteBuffer(const void *values, const std::string &handle, std::uint64_t repeatIndex, unsigned replicaIndex) {
  std::memcpy(core::rowOf(*data_, handle, repeatIndex, replicaIndex, "copyToRemoteBuffer"), values, core::rowBytes(*data_, handle));
}

void Engine::copyFromRemoteBuffer(const std::string &handle, void *values, std::uint64_t repeatIndex, unsigned replicaIndex) {
  std::memcpy(values, core::rowOf(*data_, handle, repeatIndex, replicaIndex, "copyFromRemoteBuffer"), core::rowBytes(*data_, handle));
}

void Engine::requireRow(const std::string &handle, std::size_t bytes) const {
  if (bytes != core::rowBytes(*data_, handle))
    throw stream_connection_error("a row of remote buffer '" + handle + "' takes " + std::to_string(core::rowBytes(*data_, handle)) +
                                  " bytes, not " + std::to_string(bytes));
}

void Engine::setPrintTensorStream(std::ostream &stream) { data_->printStream = &stream; }

void Engine::printProfileSummary(std::ostream &stream, const OptionFlags &) { core::printSummary(stream, *data_, core::collectProfile(*data_)); }

ProfileValue Engine::getGraphProfile() const {
  const EmulatorProfile profile = core::collectProfile(*data_);
  std::ostringstream summary;
  core::printSummary(summary, *data_, profile);
  return ProfileValue(profile.toJson(), summary.str());
}

void Engine::reportIntervals(std::ostream &stream) const { core::writeIntervals(stream, *data_); }

void Engine::resetExecutionProfile() {
  data_->runCycles = data_->totalCycles = data_->controlCycles = data_->hostCycles = 0;
  data_->controls = 0;
  data_->transfers = {};
  if (data_->trace)
    data_->trace->runs.clear(), data_->trace->entries = 0;
  for (const auto &step : data_->supersteps) {
    step->executions = 0;
    step->busiestCycles = step->sumCycles = step->hostSeconds = 0;
    std::fill(step->groupCycles.begin(), step->groupCycles.end(), 0.0);
  }
  for (core::CopyStep &copy : data_->copies)
    copy.executions = 0;
  for (core::StreamStep &stream : data_->streamSteps)
    stream.cycles = stream.besideCycles = 0, stream.executions = 0;
  for (core::RemoteStep &remote : data_->remoteSteps)
    remote.executions = 0;
}

EmulatorProfile Engine::getEmulatorProfile() const { return core::collectProfile(*data_); }

} // namespace poplar
