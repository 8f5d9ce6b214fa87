// Vertices that the libraries implement, and the division of work over tiles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/HalfFloat.hpp>
#include <poplar/Program.hpp>

#include "../src/archive.hpp"
#include "../src/codelets.hpp"

namespace poplibs {

using poplar::Graph;
using poplar::Tensor;
using poplar::Type;

/// Contents of an edge in a vertex's state.
struct Slot {
  char *data;
  std::uint32_t count;
  std::uint32_t unused;
  template <class T> T *as() const { return reinterpret_cast<T *>(data); }
};

struct FieldSpec {
  std::string name;
  poplar::core::Direction direction;
  Type type;
  /// One element, not a vector.
  bool single = false;
};

/// State of a vertex: a pointer to the data shared by its type, then one slot for each field.
struct State {
  const void *shared;
  std::uint64_t unused;
  Slot slots[1];
};

using Compute = void (*)(const State &state);

/// How vertices of one kind run, and how the shared data of such a type are recreated from bytes.
struct BuiltinKind {
  const char *name;
  Compute compute;
  std::shared_ptr<const void> (*read)(const std::string &bytes);
};
extern const BuiltinKind elementKind, reduceKind, blockKind, sliceKind, sortKind, permuteKind, drawKind, quarterCastKind, ctcKind, classPickKind;

template <class Shared> std::shared_ptr<const void> readShared(const std::string &bytes) {
  auto shared = std::make_shared<Shared>();
  poplar::core::Loader loader(bytes);
  loader(*shared);
  return shared;
}

/// A vertex type of a library, made on first use. Its program runs once per execution; its cycles are setPerfEstimate's: tile cycles.
const std::string &builtinType(Graph &graph, const std::string &name, const std::vector<FieldSpec> &fields, const BuiltinKind &kind,
                               std::string shared, unsigned codeBytes);
/// With data shared by all vertices of the type, which `describe` lists.
template <class Shared>
const std::string &builtinType(Graph &graph, const std::string &name, const std::vector<FieldSpec> &fields, const BuiltinKind &kind,
                               const Shared &shared, unsigned codeBytes) {
  poplar::core::Saver saver;
  saver(shared);
  return builtinType(graph, name, fields, kind, std::move(saver.bytes), codeBytes);
}
bool hasType(const Graph &graph, const std::string &name);

/// Throws unknown_vertex_type if the library's codelets were not added to the graph.
void requireLibrary(const Graph &graph, const std::string &library);
void addLibrary(Graph &graph, const std::string &library);

/// Ranges of a flat tensor on one tile.
struct TileWork {
  unsigned tile;
  std::vector<poplar::Interval> intervals;
  std::size_t elements;
};

/// The tiles that contain elements of `tensor`; throws poplibs_error naming `what` if an element has none.
std::vector<TileWork> workOf(const Graph &graph, const Tensor &tensor, const std::string &what);
/// Elements of a flat tensor, as one tensor.
Tensor pick(const Tensor &flat, const std::vector<poplar::Interval> &intervals);

/// Tile cycles of a vertex that all workers share: six times the slowest worker's plus the supervisor's.
std::uint64_t sharedCycles(const Graph &graph, std::uint64_t workerCycles);
/// Elements of the largest share if `n` are distributed among the workers in pieces of `grain`.
std::size_t workerShare(const Graph &graph, std::size_t n, std::size_t grain);

std::string contextName(const poplar::DebugContext &context, const std::string &fallback);

} // namespace poplibs
