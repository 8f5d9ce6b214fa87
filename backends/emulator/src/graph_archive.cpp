#include "graph_archive.hpp"

#include <poplar/exceptions.hpp>

#include <dlfcn.h>
#include <unordered_map>

#include "archive.hpp"
#include "stored_code.hpp"

namespace poplar::core {

/// Lists of runs that many views share, and programs that occur in several places.
struct SavedOnce {
  std::unordered_map<const RunList *, std::uint64_t> lists;
  std::unordered_map<const ProgramData *, std::uint64_t> programs;
  unsigned depth = 0;
};

struct LoadedOnce {
  GraphData *graph = nullptr;
  std::vector<std::shared_ptr<const RunList>> lists;
  std::vector<std::shared_ptr<ProgramData>> programs;
  unsigned depth = 0;
};

namespace {
/// Nested programs, each of which needs a part of this process's stack.
constexpr unsigned deepest = 4000;

template <class Once> struct Deeper {
  explicit Deeper(Once &once) : once_(once) {
    if (++once_.depth > deepest)
      throw graph_object_load_error("programs that lie in each other more than " + std::to_string(deepest) + " deep cannot be written or read");
  }
  ~Deeper() { --once_.depth; }
  Once &once_;
};
} // namespace

struct TargetMembers {
  template <class Archive> static void describe(Archive &a, Target &t) {
    a(t.type_)(t.arch_)(t.numIPUs_)(t.tilesPerIPU_)(t.workers_)(t.bytesPerTile_)(t.exchangeBytesPerCycle_)(t.clock_)(t.model_);
  }
};

template <class Archive> void describe(Archive &a, Target &target) { TargetMembers::describe(a, target); }
template <class Archive> void describe(Archive &a, EmulatorWire &w) { a(w.from)(w.to)(w.bytesPerSecond); }
template <class Archive> void describe(Archive &a, EmulatorModel &m) {
  a(m.exchangeBytesPerCycle)(m.fragmentCycles)(m.fragmentCodeBytes)(m.syncCycles)(m.globalSyncCycles)(m.exchangeSetupCycles);
  a(m.controlCycles)(m.wires)(m.linkBytesPerSecond)(m.hostBytesPerSecond)(m.streamingBytesPerSecond)(m.streamingBytesPerIpu);
  a(m.localCopyCycles)(m.localCopyBytesPerCycle)(m.vertexStartCycles)(m.supervisorCycles)(m.estimateStartCycles)(m.estimateVectorCycles);
  a(m.controlCodeBytes)(m.stackBytes);
}
template <class Archive> void describe(Archive &a, Piece &p) { a(p.begin)(p.end)(p.tile); }
template <class Archive> void describe(Archive &a, TileMap &map) {
  if constexpr (Archive::loads) {
    std::vector<Piece> pieces;
    a(pieces);
    for (const Piece &p : pieces)
      map.assign(p.begin, p.end, p.tile);
  } else {
    a(map.pieces());
  }
}
template <class Archive> void describe(Archive &a, Variable &v) { a(v.name)(v.type)(v.shape)(v.elements)(v.constant)(v.value)(v.owner)(v.tiles); }
template <class Archive> void describe(Archive &a, Run &r) { a(r.var)(r.start)(r.stride)(r.count); }
template <class Archive> void describe(Archive &a, Block &b) { a(b.var)(b.n0)(b.n1)(b.start)(b.s0)(b.s1); }
template <class Archive> void describe(Archive &a, RunList &l) { a(l.runs)(l.first); }
template <class Archive> void describe(Archive &a, Edge &e) { a(e.field)(e.row)(e.firstBlock)(e.numBlocks)(e.elements); }
template <class Archive> void describe(Archive &a, HostValue &v) { a(v.isFloat)(v.real)(v.integer); }
template <class Archive> void describe(Archive &a, FieldValue &v) { a(v.vertex)(v.field)(v.values); }
template <class Archive> void describe(Archive &a, ComputeSetData &c) { a(c.name)(c.vertices); }
template <class Archive> void describe(Archive &a, DataStream &s) { a(s.id)(s.name)(s.type)(s.elements)(s.toDevice)(s.broadcast); }
template <class Archive> void describe(Archive &a, RemoteBuffer &b) { a(b.id)(b.name)(b.type)(b.elements)(b.repeats)(b.rearranges)(b.small); }
template <class Archive> void describe(Archive &a, PrintTensorFmt &f) {
  a(f.threshold)(f.edges)(f.width)(f.digitsAll)(f.format)(f.between)(f.open)(f.close);
}
template <class Archive> void describe(Archive &a, Field &f) { a(f.name)(f.offset)(f.kind)(f.direction)(f.type)(f.layout)(f.alignment); }
template <class Archive> void describe(Archive &a, VertexType &t) {
  a(t.name)(t.multi)(t.wholeTile)(t.size)(t.codeBytes)(t.fields)(t.builtinKind)(t.builtinBytes);
}
template <class Archive> void describe(Archive &a, CodeletTable &t) { a(t.text)(t.code); }
template <class Archive> void describe(Archive &a, VertexData &v) {
  a(v.computeSet)(v.tile)(v.perfEstimate)(v.flops)(v.edges)(v.firstValue)(v.endValue);
}

/// A number; 0 is followed by the list itself.
inline void describe(Saver &a, View &v) {
  a(v.var)(v.offset)(v.shape)(v.strides)(v.list != nullptr);
  if (!v.list)
    return;
  const auto found = a.once->lists.emplace(v.list.get(), a.once->lists.size() + 1);
  a(found.second ? std::uint64_t(0) : found.first->second);
  if (found.second)
    a(*v.list);
}

inline void describe(Loader &a, View &v) {
  bool hasList = false;
  a(v.var)(v.offset)(v.shape)(v.strides)(hasList);
  if (hasList) {
    std::uint64_t number = 0;
    a(number);
    if (number == 0) {
      auto list = std::make_shared<RunList>();
      a(*list);
      a.once->lists.push_back(std::move(list));
      number = a.once->lists.size();
    }
    require(number <= a.once->lists.size(), "a view of a list that there is not");
    v.list = a.once->lists[std::size_t(number - 1)];
  }
  requireInside(*a.once->graph, v);
}

template <class Archive> void describe(Archive &a, TensorData &t) {
  if constexpr (Archive::loads)
    t.graph = a.once->graph;
  a(t.type)(t.view);
}

inline void describe(Saver &a, Tensor &t) {
  a(t.valid());
  if (t.valid())
    a(t.data());
}

inline void describe(Loader &a, Tensor &t) {
  bool valid = false;
  a(valid);
  if (!valid)
    return;
  TensorData data;
  a(data);
  t = Tensor(std::make_shared<const TensorData>(std::move(data)));
}

template <class Archive> void describe(Archive &a, HostHandle &h) { a(h.tensor)(h.write)(h.read); }
template <class Archive> void describe(Archive &a, TensorValue &t) { a(t.tensor)(t.values); }
template <class Archive> void describe(Archive &a, ProgramData &p) {
  a(p.kind)(p.name)(p.children)(p.number)(p.source)(p.destination)(p.stream)(p.remote)(p.offset)(p.hasOffset);
  a(p.cases)(p.hasDefault)(p.format)(p.replicas);
}

inline void describe(Saver &a, program::Program &p) {
  const Deeper<SavedOnce> deeper(*a.once);
  const auto found = a.once->programs.find(p.data().get());
  a(found == a.once->programs.end() ? std::uint64_t(0) : found->second);
  if (found != a.once->programs.end())
    return;
  a(*p.data());
  a.once->programs.emplace(p.data().get(), a.once->programs.size() + 1);
}

inline void describe(Loader &a, program::Program &p) {
  const Deeper<LoadedOnce> deeper(*a.once);
  std::uint64_t number = 0;
  a(number);
  if (number == 0) {
    auto data = std::make_shared<ProgramData>();
    a(*data);
    require(data->kind <= ProgramKind::CycleStamp, "a program of a kind that there is not");
    a.once->programs.push_back(std::move(data));
    number = a.once->programs.size();
  }
  require(number <= a.once->programs.size(), "a program that there is not");
  p = program::Program(a.once->programs[std::size_t(number - 1)]);
}

namespace {

template <class Archive> void describeParts(Archive &a, GraphData &g) {
  a(g.replicas)(g.replicaIndices)(g.blocks)(g.computeSets)(g.fieldValues)(g.fieldSizes)(g.tensorValues)(g.handles)(g.streams)(g.remotes);
  a(g.libraries)(g.functions);
}

using MakeBuiltin = bool (*)(VertexType &);

/// A built-in type is created by a library of this process, or by the one that the file was written with.
void makeBuiltin(VertexType &type, const std::string &library) {
  void *found = dlsym(RTLD_DEFAULT, "snncMakeBuiltin");
  if (!found && !library.empty())
    if (void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL))
      found = dlsym(handle, "snncMakeBuiltin");
  if (!found)
    throw graph_object_load_error("the executable uses PopLibs: link the program with them (-lpopops)");
  require(reinterpret_cast<MakeBuiltin>(found)(type), "a vertex type of PopLibs that there is not");
}

std::string builtinLibrary() {
  Dl_info info;
  void *found = dlsym(RTLD_DEFAULT, "snncMakeBuiltin");
  return found && dladdr(found, &info) != 0 ? info.dli_fname : "";
}

/// Types that vertices have, in the order of their first vertices.
std::vector<const VertexType *> usedTypes(const GraphData &graph, std::unordered_map<const VertexType *, std::uint32_t> &numbers) {
  std::vector<const VertexType *> types;
  for (const VertexData &v : graph.vertices)
    if (numbers.emplace(v.type, std::uint32_t(types.size())).second)
      types.push_back(v.type);
  return types;
}

void saveTypes(Saver &a, const GraphData &graph, const std::vector<const VertexType *> &types) {
  std::vector<CodeletTable> tables;
  for (const CodeletTable &table : graph.codelets.tables())
    tables.push_back(withCode(table));
  a(processorKind())(tables)(builtinLibrary())(std::uint64_t(types.size()));
  for (const VertexType *type : types) {
    a(!type->builtinKind.empty());
    if (type->builtinKind.empty())
      a(type->name);
    else
      a(*type);
  }
}

std::vector<const VertexType *> loadTypes(Loader &a, GraphData &graph) {
  std::string processor, library;
  std::vector<CodeletTable> tables;
  a(processor)(tables)(library);
  if (!tables.empty() && processor != processorKind())
    throw graph_object_load_error("the executable was compiled on another kind of processor: compile it here");
  for (const CodeletTable &table : tables)
    addStored(graph.codelets, table);
  std::vector<const VertexType *> types;
  std::uint64_t n = 0;
  for (a(n); types.size() < n;) {
    bool builtin = false;
    a(builtin);
    auto type = std::make_unique<VertexType>();
    if (builtin) {
      a(*type);
      makeBuiltin(*type, library);
      types.push_back(&graph.codelets.addBuiltin(std::move(type)));
    } else {
      a(type->name);
      require(graph.codelets.contains(type->name), "a vertex type that there is not");
      types.push_back(&graph.codelets.find(type->name));
    }
  }
  return types;
}

} // namespace

std::string graphToBytes(GraphData &graph, ArrayRef<program::Program> programs) {
  SavedOnce once;
  Saver a;
  a.once = &once;
  std::unordered_map<const VertexType *, std::uint32_t> numbers;
  const std::vector<const VertexType *> types = usedTypes(graph, numbers);
  a(graph.target)(graph.variables);
  saveTypes(a, graph, types);
  a(std::uint64_t(graph.vertices.size()));
  for (std::uint32_t v = 0; v < graph.vertices.size(); ++v) {
    VertexData vertex = graph.vertices[v];
    // Estimators are functions of this process, so their current results are written.
    const VertexPerfEstimate estimate = graph.perfEstimateOf(v);
    vertex.perfEstimate = estimate.cycles;
    vertex.flops = estimate.flops;
    a(numbers.at(vertex.type))(vertex);
  }
  describeParts(a, graph);
  a(programs.cloneAsVector());
  return std::move(a.bytes);
}

std::shared_ptr<GraphData> graphFromBytes(const std::string &bytes, std::vector<program::Program> &programs) {
  auto graph = std::make_shared<GraphData>();
  LoadedOnce once;
  once.graph = graph.get();
  Loader a(bytes);
  a.once = &once;
  a(graph->target)(graph->variables);
  const std::vector<const VertexType *> types = loadTypes(a, *graph);
  std::uint64_t n = 0;
  for (a(n); graph->vertices.size() < n;) {
    std::uint32_t type = 0;
    a(type);
    require(type < types.size(), "a vertex of a type that there is not");
    VertexData vertex;
    vertex.type = types[type];
    a(vertex);
    graph->vertices.push_back(std::move(vertex));
  }
  describeParts(a, *graph);
  a(programs);
  require(a.left() == 0, "more than it should");
  requireConsistent(*graph);
  std::set<const ProgramData *> seen;
  for (const program::Program &program : programs)
    requireConsistent(*graph, program, seen);
  for (const program::Program &function : graph->functions)
    requireConsistent(*graph, function, seen);
  return graph;
}

namespace {

/// The same elements of variables with other numbers.
template <class F> View renumbered(View view, F &&number) {
  if (!view.list) {
    view.var = number(view.var);
    return view;
  }
  RunList list = *view.list;
  for (Run &r : list.runs)
    r.var = number(r.var);
  view.list = std::make_shared<const RunList>(std::move(list));
  return view;
}

} // namespace

std::string tensorsToBytes(const GraphData &graph, ArrayRef<Tensor> tensors) {
  SavedOnce once;
  Saver a;
  a.once = &once;
  std::map<std::uint32_t, std::uint32_t> numbers;
  std::vector<Variable> variables;
  std::vector<TensorData> parts;
  for (const Tensor &tensor : tensors) {
    requireOwn(graph, tensor, "serializeTensors");
    TensorData part = tensor.data();
    part.view = renumbered(part.view, [&](std::uint32_t var) {
      const auto found = numbers.emplace(var, std::uint32_t(variables.size()));
      if (found.second) {
        variables.push_back(graph.variables[var]);
        variables.back().owner = ~0u;
      }
      return found.first->second;
    });
    parts.push_back(std::move(part));
  }
  a(variables)(parts);
  return std::move(a.bytes);
}

std::vector<Tensor> tensorsFromBytes(GraphData &graph, const std::string &bytes) {
  GraphData read;
  read.target = graph.target;
  LoadedOnce once;
  once.graph = &read;
  Loader a(bytes);
  a.once = &once;
  std::vector<TensorData> parts;
  a(read.variables);
  requireVariables(read);
  a(parts);
  require(a.left() == 0, "more than it should");
  const std::uint32_t first = std::uint32_t(graph.variables.size());
  graph.variables.insert(graph.variables.end(), read.variables.begin(), read.variables.end());
  std::vector<Tensor> tensors;
  for (const TensorData &part : parts)
    tensors.push_back(makeTensor(&graph, part.type, renumbered(part.view, [&](std::uint32_t var) { return first + var; })));
  return tensors;
}

} // namespace poplar::core
