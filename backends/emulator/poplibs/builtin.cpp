#include "builtin.hpp"

#include <algorithm>
#include <cstring>

#include <poplar/exceptions.hpp>
#include <poputil/exceptions.hpp>

#include "../src/graph_data.hpp"

namespace poplibs {

using namespace poplar::core;

namespace {

/// Gives a type its program and the data shared by its vertices, from the bytes of these data.
void fillIn(VertexType &type, const BuiltinKind &kind) {
  type.compute = reinterpret_cast<void (*)(void *)>(reinterpret_cast<void *>(kind.compute));
  type.owned = kind.read(type.builtinBytes);
  const void *pointer = type.owned.get();
  type.initial.resize(sizeof pointer);
  std::memcpy(type.initial.data(), &pointer, sizeof pointer);
}

} // namespace

const std::string &builtinType(Graph &graph, const std::string &name, const std::vector<FieldSpec> &fields, const BuiltinKind &kind,
                               std::string shared, unsigned codeBytes) {
  CodeletLibrary &library = graph.data().codelets;
  const std::string canonical = canonicalName(name);
  if (library.contains(canonical))
    return library.find(canonical).name;
  auto type = std::make_unique<VertexType>();
  type->name = canonical;
  type->multi = false;
  type->wholeTile = true;
  type->size = std::uint32_t(16 + fields.size() * sizeof(Slot));
  type->codeBytes = codeBytes;
  std::uint32_t offset = 16;
  for (const FieldSpec &f : fields) {
    const FieldKind kindOfField = f.single ? FieldKind::Scalar : FieldKind::Vector;
    type->fields.push_back({f.name, offset, kindOfField, f.direction, f.type, Layout::Span, std::uint32_t(f.type.size())});
    offset += sizeof(Slot);
  }
  type->builtinKind = kind.name;
  type->builtinBytes = std::move(shared);
  fillIn(*type, kind);
  return library.addBuiltin(std::move(type)).name;
}

/// For executables: libpoplar looks it up by name if PopLibs are linked.
extern "C" bool snncMakeBuiltin(VertexType &type) {
  for (const BuiltinKind *kind : {&elementKind, &reduceKind, &blockKind, &sliceKind, &sortKind, &permuteKind, &drawKind, &quarterCastKind,
                                   &ctcKind, &classPickKind})
    if (type.builtinKind == kind->name) {
      fillIn(type, *kind);
      return true;
    }
  return false;
}

bool hasType(const Graph &graph, const std::string &name) { return graph.data().codelets.contains(canonicalName(name)); }

void requireLibrary(const Graph &graph, const std::string &library) {
  if (graph.data().libraries.count(library) == 0)
    throw poplar::unknown_vertex_type("the codelets of " + library + " were not added: call " + library + "::addCodelets(graph)");
}

void addLibrary(Graph &graph, const std::string &library) { graph.data().libraries.insert(library); }

std::vector<TileWork> workOf(const Graph &graph, const Tensor &tensor, const std::string &what) {
  bool complete = true;
  const Graph::TileToTensorMapping mapping = graph.getTileMapping(tensor, &complete);
  if (!complete)
    throw poputil::poplibs_error(what + ": tensor '" + tensor.getName() + "' of shape " + tensor.shapeToString() +
                                 " is not mapped to tiles completely");
  std::vector<TileWork> work;
  for (std::size_t tile = 0; tile < mapping.size(); ++tile) {
    std::size_t n = 0;
    for (const poplar::Interval &i : mapping[tile])
      n += i.size();
    if (n)
      work.push_back({unsigned(tile), mapping[tile], n});
  }
  return work;
}

Tensor pick(const Tensor &flat, const std::vector<poplar::Interval> &intervals) {
  if (intervals.size() == 1)
    return flat.slice(intervals[0]);
  return poplar::concat(flat.slices(poplar::ArrayRef<poplar::Interval>(intervals)));
}

std::uint64_t sharedCycles(const Graph &graph, std::uint64_t workerCycles) {
  const poplar::Target &target = graph.getTarget();
  return target.getNumWorkerContexts() * workerCycles + std::uint64_t(target.getEmulatorModel().supervisorCycles);
}

std::size_t workerShare(const Graph &graph, std::size_t n, std::size_t grain) {
  const std::size_t workers = graph.getTarget().getNumWorkerContexts();
  const std::size_t grains = (n + grain - 1) / grain;
  return std::min(n, (grains + workers - 1) / workers * grain);
}

std::string contextName(const poplar::DebugContext &context, const std::string &fallback) {
  return context.getPathName().empty() ? fallback : context.getPathName();
}

} // namespace poplibs
