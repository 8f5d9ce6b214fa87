// A compute set prepared for execution: vertex states, pointers, staging, exchanges.
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

/// An edge that is not a contiguous range: its elements are gathered before the vertex runs and scattered afterwards.
struct StagedEdge {
  /// Location of the vertex's pointer.
  char **slot;
  std::uint32_t scratchOffset;
  std::uint32_t firstStrip, numStrips;
  std::uint16_t elementBytes;
  bool writes;
};

/// Elements of one staged edge: n1 rows of n0, strides in elements.
struct Strip {
  char *base;
  std::uint32_t n0, n1;
  Index s0, s1;
};

/// Elements that a MultiVertex writes through one edge.
struct WrittenEdge {
  char **slot;
  std::size_t bytes;
};

struct VertexCall {
  void (*compute)(void *);
  char *state;
  std::uint32_t firstStaged, numStaged;
  /// For a MultiVertex.
  std::uint32_t firstWritten, numWritten;
  /// Used if the codelet counts no cycles.
  std::uint64_t cycles;
  /// Index in Superstep::estimated if `cycles` is an estimate from bytes, otherwise noGuess.
  std::uint16_t guess;
  bool multi;
  /// Its cycles are tile cycles.
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
  /// If fields are guarded, or workers isolated: a description of each staged or written edge, for messages.
  std::vector<std::string> stagedNames, writtenNames;
  /// Contains only single-worker vertices whose edges need no staging.
  bool plain = false;
  std::uint32_t scratchBytes = 0;
  /// States of all vertices, and their values when the engine is loaded.
  AlignedBytes states;
  std::vector<char> initialStates;
  Exchange gather, scatter;
  /// Whether transfers that overlap with the program must finish before this superstep starts.
  bool waits = false;
  /// Vertex types whose cycles are estimated if they count none, and whether this happened.
  std::vector<std::string> estimated;
  std::vector<char> guessed;

  /// Sums over several runs: executions, tile cycles, and seconds on this host.
  std::uint64_t executions = 0;
  double busiestCycles = 0, sumCycles = 0, hostSeconds = 0;
  std::vector<double> groupCycles;
  /// Seconds of all vertices in the last run, summed over threads; -1 before the first run.
  double serialSeconds = -1;
};

/// Checks the compute set and plans it. `storage` contains the variables.
std::unique_ptr<Superstep> planSuperstep(const GraphData &graph, std::uint32_t computeSet, const Storage &storage);
/// The exchanges of a compute set.
void planComputeExchange(const GraphData &graph, Superstep &step);
/// Bytes of a vertex on an IPU, and of the rows of its list fields.
std::uint64_t deviceStateBytes(const GraphData &graph, std::uint32_t vertex);
std::uint64_t deviceListBytes(const GraphData &graph, std::uint32_t vertex);

} // namespace poplar::core
