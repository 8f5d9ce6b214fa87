// Contents of an Engine: the program as flat operations, its steps, storage and streams.
#pragma once

#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poplar/Engine.hpp>

#include "executor.hpp"
#include "graph_data.hpp"
#include "moves.hpp"
#include "program_data.hpp"
#include "storage.hpp"
#include "superstep.hpp"
#include "trace.hpp"
#include "transfers.hpp"
#include "undefined.hpp"

namespace poplar::core {

/// A Copy within the device.
struct CopyStep {
  std::string name;
  std::uint32_t elementBytes;
  std::vector<Move> moves;
  /// Second half of a copy between parts of one variable, through `buffer`.
  std::vector<Move> secondMoves;
  AlignedBytes buffer;
  Exchange exchange;
  double localCycles = 0;
  /// Whether transfers that overlap with the program must finish before this copy starts.
  bool waits = false;
  std::uint64_t executions = 0;
};

/// A Copy between a stream and the device, through a buffer in stream order.
struct StreamStep {
  std::string name;
  std::uint32_t stream;
  bool toDevice;
  std::uint32_t elementBytes;
  AlignedBytes buffer;
  std::uint64_t bytes;
  std::vector<Move> moves;
  /// Whether the program continues during the transfer.
  bool beside = false;
  /// Cycles of all its transfers, and the part of them that overlapped with the program.
  double cycles = 0, besideCycles = 0;
  std::uint64_t executions = 0;
};

/// A Copy between rows of a remote buffer and the device.
struct RemoteStep {
  std::string name;
  std::uint32_t remote, ipu;
  bool toDevice;
  std::uint32_t elementBytes;
  std::uint64_t rowBytes;
  /// The moves of each copied row, as if it were the first of the buffer.
  std::vector<std::vector<Move>> moves;
  /// The row numbers, gathered before the copy; if empty, the first row.
  AlignedBytes offsets;
  std::vector<Move> offsetMoves;
  /// Ranges of the tensor's variables on tiles: one fragment each.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> fragments;
  double transferCycles = 0;
  std::uint64_t executions = 0;
};

/// Sends a tensor to other replicas, through `buffer`.
struct CrossStep {
  std::string name;
  std::uint32_t elementBytes;
  AlignedBytes buffer;
  std::vector<Move> toBuffer, fromBuffer;
  std::map<unsigned, unsigned> replicas;
  double cycles = 0;
  std::uint64_t executions = 0;
};

struct PrintStep {
  std::string title;
  PrintTensorFmt format;
  Type type;
  std::vector<std::size_t> shape;
  AlignedBytes buffer;
  std::vector<Move> moves;
};

struct Op {
  ProgramKind kind;
  /// Step or count, depending on the kind.
  std::uint32_t number = 0;
  std::vector<std::uint32_t> children;
  const char *predicate = nullptr;
  Type predicateType;
  std::vector<std::int32_t> cases;
  bool hasDefault = false;
  std::string message;
  /// Variables that it reads and writes itself, excluding vertices.
  Tensor source, destination, offset;
  /// For a cycle stamp: its destination, and the stamp that is subtracted from it.
  char *stamp = nullptr;
  const char *since = nullptr;
};

struct HostAccess {
  bool read, write;
  std::uint32_t elementBytes;
  std::uint64_t bytes;
  std::string tensor;
  AlignedBytes buffer;
  std::vector<Move> toDevice, toHost;
  /// Set if undefined elements are tracked.
  std::vector<Block> blocks;
};

struct StreamConnection {
  char *begin = nullptr, *end = nullptr, *next = nullptr;
  bool fixed = false;
  std::optional<StreamCallbackHandle> callback;
  /// Callbacks of single replicas.
  std::map<unsigned, StreamCallbackHandle> byReplica;
};

/// When a callback is called for the data of its next transfer: never, right after a transfer, or then on a thread of its own.
enum class Prefetch { Never, Now, OnThread };

struct EngineData {
  explicit EngineData(std::shared_ptr<GraphData> graphData);

  std::shared_ptr<GraphData> graph;
  Storage storage;
  std::vector<Op> ops;
  std::vector<std::uint32_t> programs;
  std::vector<std::unique_ptr<Superstep>> supersteps;
  std::vector<CopyStep> copies;
  std::vector<StreamStep> streamSteps;
  std::vector<RemoteStep> remoteSteps;
  /// Streaming memory of each remote buffer, and the IPU whose tiles use it.
  std::vector<AlignedBytes> remotes;
  std::vector<std::uint32_t> remoteIpus;
  std::vector<PrintStep> prints;
  std::vector<CrossStep> crossings;
  /// The data of all replicas, by number. Those of replica 0 own the others (`others`).
  std::vector<EngineData *> replicas;
  std::vector<std::unique_ptr<EngineData>> others;
  unsigned replica = 0;
  Prefetch prefetch = Prefetch::Now;
  std::map<std::string, HostAccess> handles;
  std::vector<StreamConnection> connections;
  std::vector<TileMemory> memory;
  std::vector<MemoryPoint> memoryOverTime;
  /// If dead variables are overwritten: by operation, and when the engine is loaded.
  std::vector<std::vector<std::uint32_t>> dying;
  std::vector<std::uint32_t> deadAtStart;
  Executor executor;
  std::ostream *printStream;
  bool loaded = false;
  /// Undefined elements, if they are checked; and the elements that operations access, by operation number.
  std::unique_ptr<UndefinedElements> undefined;
  std::map<std::uint32_t, std::pair<std::vector<Block>, std::vector<Block>>> touched;
  /// If execution reports are requested.
  std::unique_ptr<Trace> trace;
  /// Path of the profile that is written when the engine ends.
  std::string profilePath;
  /// Device cycles of the run in progress or of the last one; of all runs; of control programs; of host transfers.
  double runCycles = 0, totalCycles = 0, controlCycles = 0, hostCycles = 0;
  std::uint64_t controls = 0;
  Transfers transfers;
};

/// Lowers programs to operations.
void lowerPrograms(EngineData &engine, ArrayRef<program::Program> programs);
void planHandles(EngineData &engine);
/// Name of the compute set, copy or transfer that an operation runs; null for other operations.
const std::string *stepName(const EngineData &engine, const Op &op);
void requireMapped(const GraphData &graph, const std::vector<Block> &blocks, const std::string &user);
/// No constants, and no element twice.
void requireWritable(const GraphData &graph, const Tensor &tensor, const std::vector<Block> &blocks, const std::string &user);
/// Moves between blocks and a flat buffer.
std::vector<Move> movesToBuffer(const EngineData &engine, const std::vector<Block> &blocks, char *buffer, std::uint32_t bytes, bool toBuffer);
/// Plans a copy between tiles and a remote buffer; returns its number.
std::uint32_t planRemote(EngineData &engine, const ProgramData &data);
void runRemote(EngineData &engine, RemoteStep &step);
/// Allocates the memory of all remote buffers; throws stream_memory_allocation_error if no IPU has enough.
void takeRemotes(EngineData &engine);
/// Buffers that no program copies also need memory on some IPU.
void requireRoomForRemotes(const EngineData &engine);
/// Bytes of remote buffers of each IPU.
std::vector<std::uint64_t> remoteBytes(const EngineData &engine);
/// The remote buffer's number.
std::uint32_t remoteId(const EngineData &engine, const std::string &handle);
/// Cycles before the data of a remote copy moves: all tiles of all IPUs wait for each other.
double remoteSyncCycles(const Target &target);
/// Fills `memory`; throws graph_memory_allocation_error if a tile has too little memory.
void accountMemory(EngineData &engine);
void runOp(EngineData &engine, std::uint32_t op);
/// Sends the data of one step between replicas; compares a tensor of all replicas.
void runCrossing(EngineData &engine, std::uint32_t crossing);
void requireEqual(EngineData &engine, std::uint32_t crossing);
EmulatorProfile collectProfile(const EngineData &engine);
void printSummary(std::ostream &os, const EngineData &engine, const EmulatorProfile &profile);
void printTensor(std::ostream &os, const PrintStep &print);
/// Cycles of a step other than computing: control, and a barrier and set-up for every exchange.
double syncCyclesOf(const Target &target, const Exchange &exchange);

} // namespace poplar::core
