// A compute set made ready to run: vertex states, pointers, staging, exchanges.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codelets.hpp"
#include "exchange.hpp"
#include "moves.hpp"
#include "storage.hpp"

namespace poplar::core {

struct GraphData;

/// An edge that is no contiguous range: its elements are gathered before the vertex runs and scattered behind it.
struct StagedEdge {
  /// Where the vertex keeps its pointer.
  char **slot;
  std::uint32_t scratchOffset;
  std::uint32_t firstStrip, numStrips;
  std::uint16_t elementBytes;
  bool writes;
};

/// Elements of one staged edge: n1 rows of n0, steps in elements.
struct Strip {
  char *base;
  std::uint32_t n0, n1;
  Index s0, s1;
};

/// What a MultiVertex writes through one edge.
struct WrittenEdge {
  char **slot;
  std::size_t bytes;
};

struct VertexCall {
  void (*compute)(void *);
  char *state;
  std::uint32_t firstStaged, numStaged;
  /// Of a MultiVertex.
  std::uint32_t firstWritten, numWritten;
  /// Used when the codelet counts no cycles.
  std::uint64_t cycles;
  /// Index in Superstep::estimated where `cycles` is a guess from bytes, else noGuess.
  std::uint16_t guess;
  bool multi;
  /// Its cycles are the tile's.
  bool wholeTile;
  std::uint32_t stateBytes;
};

constexpr std::uint16_t noGuess = 0xffff;

struct TileGroup {
  std::uint32_t tile, firstCall, numCalls;
};

struct Superstep {
  std::uint32_t computeSet = 0;
  std::string name;
  std::vector<VertexCall> calls;
  std::vector<TileGroup> groups;
  std::vector<StagedEdge> staged;
  std::vector<Strip> strips;
  std::vector<WrittenEdge> written;
  /// Where fields are guarded, or workers kept apart: what each staged or written edge is, for messages.
  std::vector<std::string> stagedNames, writtenNames;
  /// Nothing but vertices of one worker each, whose edges lie as they need them.
  bool plain = false;
  std::uint32_t scratchBytes = 0;
  /// States of all vertices, and what they are when the engine is loaded.
  AlignedBytes states;
  std::vector<char> initialStates;
  Exchange gather, scatter;
  /// Whether transfers that run beside the program must have arrived before.
  bool waits = false;
  /// Vertex types whose cycles are guessed where they count none, and whether that happened.
  std::vector<std::string> estimated;
  std::vector<char> guessed;

  /// Measured over runs.
  std::uint64_t executions = 0;
  double busiestCycles = 0, sumCycles = 0, hostSeconds = 0;
  std::vector<double> groupCycles;
  /// Seconds that all vertices took last time, summed over threads; -1 before the first run.
  double serialSeconds = -1;
};

/// Checks the compute set and plans it. `storage` holds the variables.
std::unique_ptr<Superstep> planSuperstep(const GraphData &graph, std::uint32_t computeSet, const Storage &storage);
/// The exchanges of a compute set.
void planComputeExchange(const GraphData &graph, Superstep &step);
/// Bytes that a vertex keeps on an IPU, and those of its list fields' rows.
std::uint64_t deviceStateBytes(const GraphData &graph, std::uint32_t vertex);
std::uint64_t deviceListBytes(const GraphData &graph, std::uint32_t vertex);

} // namespace poplar::core
