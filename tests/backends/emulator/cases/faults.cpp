// Pairs of programs: one with a fault, its twin without. `faults bad|good TABLE [NAME…]` prints what each throws, or "none".
#include "case.hpp"

#include <poplar/CycleCount.hpp>
#include <gcl/Collectives.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/Gather.hpp>
#include <popops/Loop.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/TopK.hpp>
#include <popops/Zero.hpp>
#include <popops/codelets.hpp>
#include <poprand/RandomGen.hpp>
#include <poprand/codelets.hpp>
#include <poputil/TileMapping.hpp>

#include <limits>
#include <stdexcept>

namespace pe = popops::expr;

namespace {

std::string table;

/// An environment variable, while it is wanted.
class Setting {
public:
  Setting(const char *name, const char *value = "1") : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }

private:
  const char *name_;
};

struct World {
  Device device;
  Graph graph;
  Sequence prog;
  Tensor a, b, out, m, ints, one;
  ComputeSet cs;

  explicit World(unsigned replicas = 1, bool libraries = false)
      : device(smallDevice(replicas)), graph(device.getTarget(), replication_factor(replicas)) {
    graph.addCodelets(table);
    if (libraries) {
      popops::addCodelets(graph);
      poplin::addCodelets(graph);
    }
    a = variable(FLOAT, {8}, "a", 0), b = variable(FLOAT, {8}, "b", 0), out = variable(FLOAT, {8}, "out", 1);
    m = variable(FLOAT, {4, 6}, "m", 2), ints = variable(INT, {8}, "ints", 0);
    one = graph.addConstant(FLOAT, {8}, 1.f, "one");
    graph.setTileMapping(one, 0);
    cs = graph.addComputeSet("work");
  }
  Tensor variable(Type type, std::vector<std::size_t> shape, const char *name, int tile = -1) {
    const Tensor t = graph.addVariable(type, shape, name);
    if (tile >= 0)
      graph.setTileMapping(t, unsigned(tile));
    return t;
  }
  VertexRef vertex(const char *type, std::initializer_list<ConnectionDesc> fields, int tile = 0) {
    const VertexRef v = graph.addVertex(cs, type, fields);
    if (tile >= 0)
      graph.setTileMapping(v, unsigned(tile));
    return v;
  }
  VertexRef scale(const Tensor &t, int tile = 0) { return vertex("Scale", {{"data", t}, {"factor", 2.f}}, tile); }
  Tensor number(int value, Type type = UNSIGNED_INT) {
    const Tensor t = graph.addConstant(type, {}, value, "number");
    graph.setTileMapping(t, 0);
    return t;
  }
  Engine engine(const OptionFlags &options = {}) { return Engine(graph, prog, options); }
  void run(const OptionFlags &options = {}) { engine(options).loadAndRun(device); }
  void execute() {
    prog.add(Execute(cs));
    run();
  }
};

/// A graph with the libraries.
struct Libraries : World {
  Libraries() : World(1, true) {}
};

Device smallMemory(unsigned bytes) {
  IPUModel model("ipu2");
  model.tilesPerIPU = 4;
  model.memoryBytesPerTile = bytes;
  return model.createDevice();
}

/// 3000 floats on one tile, and 12 times as many spread over all where a vertex reads them at once.
void fill(unsigned bytes, bool gathered, const OptionFlags &options = {}) {
  const Device device = smallMemory(bytes);
  Graph graph(device);
  graph.addCodelets(table);
  const Tensor t = graph.addVariable(FLOAT, {3000}, gathered ? VariableMappingMethod::LINEAR : VariableMappingMethod::NONE, "big");
  if (!gathered)
    graph.setTileMapping(t, 1);
  const Tensor sum = graph.addVariable(FLOAT, {}, "sum");
  graph.setTileMapping(sum, 3);
  const ComputeSet cs = graph.addComputeSet("gather all");
  const VertexRef v = graph.addVertex(cs, "Sum", {{"rows", t.reshape({1, 3000})}, {"out", sum}});
  graph.setTileMapping(v, gathered ? 3 : 1);
  Engine(graph, Execute(cs), options).loadAndRun(device);
}

struct Thrower : StreamCallback {
  explicit Thrower(bool throws) : throws_(throws) {}
  void fetch(void *to) override {
    if (throws_)
      throw std::runtime_error("no data left");
    *static_cast<float *>(to) = 1;
  }
  bool throws_;
};

using Fault = void (*)(bool bad);

const std::vector<std::pair<const char *, Fault>> faults = {
    // Races
    {"write_write", [](bool bad) { World w; w.scale(w.a.slice(0, 5)); w.scale(w.a.slice(bad ? 4 : 5, 8), 1); w.execute(); }},
    {"row_meets_column", [](bool bad) { World w; w.scale(w.m.slice(2, 3, 1).flatten()); w.scale(bad ? w.m[1] : w.m.slice(3, 4, 1).flatten(), 1); w.execute(); }},
    {"read_of_a_row", [](bool bad) { World w; w.scale(w.m[bad ? 1 : 3]); w.vertex("Sum", {{"rows", w.m.slice(0, 3)}, {"out", w.out[0]}}, 3); w.execute(); }},
    {"through_a_transpose", [](bool bad) { World w; const Tensor t = w.m.transpose().flatten(); w.scale(t.slice(0, 4)); w.scale(w.m.flatten().slice(bad ? 18 : 19, 24), 1); w.execute(); }},
    {"counter_of_two", [](bool bad) { World w; w.vertex("Count", {{"counter", w.ints[3]}}); w.vertex("Count", {{"counter", w.ints[bad ? 3 : 4]}}, 2); w.execute(); }},
    {"library_meets_vertex", [](bool bad) { Libraries w; popops::zero(w.graph, w.a.slice(0, 4), w.cs); w.scale(w.a.slice(bad ? 3 : 4, 8)); w.execute(); }},
    {"workers_share_a_word", [](bool bad) { const Setting s("SNNC_CHECK_WORKERS"); World w; w.vertex("Neighbours", {{"data", w.variable(UNSIGNED_SHORT, {12}, "t", 0)}, {"step", bad ? 1u : 2u}}); w.execute(); }},
    {"workers_see_each_other", [](bool bad) { const Setting s("SNNC_CHECK_WORKERS"); World w; w.vertex("Chain", {{"in", w.ints}, {"data", w.variable(INT, {6}, "t", 0)}, {"chained", bad}}); w.execute(); }},
    {"overlap_of_concats", [](bool bad) { World w; w.scale(concat(w.a.slice(4, 8), w.b.slice(0, 4))); w.scale(concat(w.b.slice(bad ? 3 : 4, 8), w.a.slice(0, 2)), 1); w.execute(); }},
    {"scalar_in_a_vector", [](bool bad) { World w; w.vertex("Count", {{"counter", w.ints[bad ? 4 : 5]}}); w.vertex("Bits", {{"data", w.ints.slice(2, 5)}}, 1); w.execute(); }},
    {"through_a_reinterpret", [](bool bad) { World w; w.vertex("Bits", {{"data", w.a.reinterpret(INT).slice(0, bad ? 4 : 3)}}); w.vertex("Sum", {{"rows", w.a.slice(3, 8).expand({0})}, {"out", w.out[1]}}, 1); w.execute(); }},
    {"through_a_sub_sample", [](bool bad) { World w; w.scale(w.m.flatten().subSample(bad ? 3 : 2, 0)); w.scale(w.m.flatten().slice(1, 24).subSample(2, 0), 2); w.execute(); }},
    {"through_a_reverse", [](bool bad) { World w; w.scale(w.m.reverse(0)[0]); w.vertex("Add<float>", {{"a", w.m[bad ? 3 : 0]}, {"b", w.m[1]}, {"out", w.out.slice(0, 6)}}, 1); w.execute(); }},
    {"row_of_a_list", [](bool bad) { World w; w.vertex("Sum", {{"rows", std::vector<Tensor>{w.a, w.b.slice(0, 4)}}, {"out", w.out[0]}}); w.scale(w.b.slice(bad ? 3 : 4, 6), 3); w.execute(); }},
    {"same_tile_same_element", [](bool bad) { World w; w.scale(w.a.slice(0, 4)); w.vertex("Poke<poplar::VectorLayout::SPAN>", {{"out", w.a.slice(bad ? 2 : 4, 8)}, {"at", 0}}); w.execute(); }},
    {"race_in_a_function", [](bool bad) { World w; w.scale(w.m[2]); w.scale(w.m.slice(bad ? 4 : 5, 6, 1)[bad ? 2 : 1], 1); const Function f = w.graph.addFunction(Execute(w.cs)); w.prog.add(Repeat(3, Sequence(Call(f)))); w.run(); }},
    {"race_in_replicas", [](bool bad) { World w(2); w.scale(w.m.dimShuffle({1, 0})[5]); w.scale(w.m[0].slice(bad ? 5 : 4, bad ? 6 : 5), 1); w.execute(); }},
    {"outputs_of_two_lists", [](bool bad) { World w; const Tensor h = w.variable(HALF, {6, 4}, "h", 0); w.vertex("PokeRow", {{"rows", h.slice(0, 3)}, {"row", 0}, {"at", 0}}); w.vertex("PokeRow", {{"rows", h.slice(bad ? 2 : 3, 6)}, {"row", 0}, {"at", 0}}, 1); w.execute(); }},
    {"output_with_an_element_twice", [](bool bad) { World w; w.scale(bad ? w.a.slice(2, 3).broadcast(3, 0) : w.a.slice(2, 5)); w.execute(); }},
    {"library_reads_what_a_vertex_writes", [](bool bad) { Libraries w; popops::cast(w.graph, w.ints.slice(0, bad ? 4 : 3), FLOAT, w.cs); w.vertex("Bits", {{"data", w.ints.slice(3, 6)}}); w.execute(); }},
    // Tiles
    {"vertex_on_no_tile", [](bool bad) { World w; w.scale(w.a, bad ? -1 : 0); w.execute(); }},
    {"vertex_beyond_the_tiles", [](bool bad) { World w; w.scale(w.a, bad ? 4 : 3); w.execute(); }},
    {"tensor_beyond_the_tiles", [](bool bad) { World w; w.graph.setTileMapping(w.a.slice(2, 4), bad ? 4 : 3); }},
    {"virtual_tile", [](bool bad) { World w; Graph part = w.graph.createVirtualGraph(2); part.setTileMapping(w.a, bad ? 2 : 1); }},
    {"interval_beyond_the_tensor", [](bool bad) { World w; w.graph.setTileMapping(w.a, {{Interval(0, 4)}, {Interval(4, bad ? 9 : 8)}}); }},
    {"partly_mapped", [](bool bad) { World w; const Tensor t = w.variable(FLOAT, {8}, "ghost"); w.graph.setTileMapping(t.slice(0, bad ? 7 : 8), 2); w.scale(t); w.execute(); }},
    {"unmapped_in_a_library", [](bool bad) { Libraries w; popops::addInPlace(w.graph, w.variable(FLOAT, {8}, "ghost", bad ? -1 : 1), w.a, w.prog); w.run(); }},
    {"unmapped_constant", [](bool bad) { World w; const Tensor c = w.graph.addConstant(FLOAT, {8}, 2.f, "ghost"); if (!bad) w.graph.setTileMapping(c, 1); w.prog.add(Copy(c, w.a)); w.run(); }},
    {"unmapped_in_a_stream", [](bool bad) { World w; const DataStream s = w.graph.addDeviceToHostFIFO("s", FLOAT, 2); w.prog.add(Copy(w.variable(FLOAT, {2}, "ghost", bad ? -1 : 1), s)); w.engine(); }},
    {"unmapped_host_access", [](bool bad) { World w; w.graph.createHostWrite("h", w.variable(FLOAT, {2}, "ghost", bad ? -1 : 1)); w.engine(); }},
    {"unmapped_print", [](bool bad) { World w; w.prog.add(PrintTensor("p", w.variable(FLOAT, {2}, "ghost", bad ? -1 : 1))); w.engine(); }},
    {"incomplete_mapping", [](bool bad) { World w; const Tensor t = w.variable(FLOAT, {8}, "ghost"); w.graph.setTileMapping(t.slice(bad ? 1 : 0, 8), 2); w.graph.getTileMapping(t); }},
    {"hole_between_slices", [](bool bad) { World w; const Tensor t = w.variable(FLOAT, {8}, "ghost"); w.graph.setTileMapping(t.slice(0, 3), 1); w.graph.setTileMapping(t.slice(bad ? 4 : 3, 8), 2); w.scale(t.slice(2, 6)); w.execute(); }},
    {"clone_of_a_half_mapped", [](bool bad) { World w; const Tensor t = w.variable(FLOAT, {8}, "ghost"); w.graph.setTileMapping(t.slice(0, bad ? 4 : 8), 1); const Tensor c = w.graph.clone(t, "copy"); w.prog.add(Copy(w.a, c)); w.run(); }},
    {"one_column_unmapped", [](bool bad) { Libraries w; const Tensor t = w.variable(FLOAT, {4, 6}, "ghost"); for (unsigned c = 0; c < (bad ? 5u : 6u); ++c) w.graph.setTileMapping(t.transpose()[c], c % 4); popops::reduce(w.graph, t, {0}, popops::Operation::ADD, w.prog); w.run(); }},
    {"host_read_of_a_concat", [](bool bad) { World w; w.graph.createHostRead("h", concat(w.a, w.variable(FLOAT, {2}, "ghost", bad ? -1 : 1))); w.engine(); }},
    {"unmapped_switch", [](bool bad) { World w; w.prog.add(Repeat(2, Sequence(Switch(w.variable(INT, {}, "ghost", bad ? -1 : 0), {{0, Sequence()}}, Sequence())))); w.run(); }},
    {"unmapped_abort", [](bool bad) { World w; w.prog.add(AbortOnCondition(w.variable(BOOL, {}, "ghost", bad ? -1 : 0), "no")); w.run(); }},
    {"unmapped_between_replicas", [](bool bad) { World w(2); w.prog.add(CrossReplicaCopy(w.a, w.variable(FLOAT, {8}, "ghost", bad ? -1 : 2), {{0, 1}, {1, 0}})); w.run(); }},
    {"more_tiles_than_there_are", [](bool bad) { World w; std::vector<std::vector<Interval>> m(bad ? 5 : 4); m[0] = {Interval(0, 4)}; m.back() = {Interval(4, 8)}; w.graph.setTileMapping(w.a, m); }},
    {"mapping_of_a_slice_beyond", [](bool bad) { World w; w.graph.setTileMapping(w.m[1], {{}, {Interval(0, bad ? 7 : 6)}}); }},
    {"vertex_of_a_virtual_graph", [](bool bad) { World w; Graph part = w.graph.createVirtualGraph(1, 3); const VertexRef v = w.scale(w.a, -1); part.setTileMapping(v, bad ? 2 : 1); w.execute(); }},
    // Vertices and fields
    {"unknown_vertex", [](bool bad) { World w; w.graph.addVertex(w.cs, bad ? "Add<double>" : "Add< float >"); }},
    {"unknown_field", [](bool bad) { World w; w.graph.connect(w.graph.addVertex(w.cs, "Scale")[bad ? "date" : "data"], w.a); }},
    {"field_not_connected", [](bool bad) { World w; const VertexRef v = w.vertex("Add<float>", {{"a", w.a}, {"out", w.out}}); if (!bad) w.graph.connect(v["b"], w.b); w.execute(); }},
    {"row_not_connected", [](bool bad) { World w; const VertexRef v = w.vertex("Sum", {{"out", w.out[0]}}); w.graph.setFieldSize(v["rows"], 2); w.graph.connect(v["rows"][0], w.a); if (!bad) w.graph.connect(v["rows"][1], w.b); w.execute(); }},
    {"connected_twice", [](bool bad) { World w; const VertexRef v = w.vertex("Add<float>", {{"a", w.a}, {"out", w.out}}); w.graph.connect(v[bad ? "a" : "b"], w.b); w.execute(); }},
    {"wrong_element_type", [](bool bad) { World w; w.scale(bad ? w.variable(HALF, {8}, "halves", 0) : w.a); w.execute(); }},
    {"matrix_for_a_vector", [](bool bad) { World w; w.scale(bad ? w.m : w.m.flatten()); w.execute(); }},
    {"vector_for_a_scalar", [](bool bad) { World w; w.vertex("Count", {{"counter", bad ? w.ints.slice(0, 1) : w.ints[0]}}); w.execute(); }},
    {"vector_for_a_list", [](bool bad) { World w; w.vertex("Sum", {{"rows", bad ? w.a : w.a.reshape({2, 4})}, {"out", w.out[0]}}); w.execute(); }},
    {"constant_written_by_a_vertex", [](bool bad) { World w; w.scale(bad ? w.one : w.a); w.execute(); }},
    {"constant_written_by_a_copy", [](bool bad) { World w; w.prog.add(Copy(w.a, bad ? w.one : w.b)); w.run(); }},
    {"constant_written_by_the_host", [](bool bad) { World w; w.graph.createHostWrite("h", bad ? w.one : w.a); w.engine(); }},
    {"constant_left_undefined", [](bool bad) { World w; w.prog.add(WriteUndef(bad ? w.one : w.a)); w.run(); }},
    {"tensor_of_another_graph", [](bool bad) { World w, other; w.scale(bad ? other.a : w.a); w.execute(); }},
    {"program_of_another_graph", [](bool bad) { World w, other; w.prog.add(Copy(w.a, bad ? other.b : w.b)); w.run(); }},
    {"mapping_of_another_graph", [](bool bad) { World w, other; w.graph.setTileMapping(bad ? other.a : w.a, 1); }},
    {"initial_values", [](bool bad) { World w; w.graph.setInitialValue(w.a, std::vector<float>(bad ? 7 : 8)); w.run(); }},
    {"table_too_small", [](bool bad) { World w; const VertexRef v = w.vertex("Table", {{"out", w.out}}); w.graph.setFieldSize(v["table"], bad ? 2 : 3); w.graph.setInitialValue(v["table"], std::vector<float>{1, 2, 3}); w.execute(); }},
    {"table_shrunk", [](bool bad) { World w; const VertexRef v = w.vertex("Table", {{"out", w.out}}); w.graph.setInitialValue(v["table"], std::vector<float>{1, 2, 3}); w.graph.setFieldSize(v["table"], bad ? 2 : 4); w.execute(); }},
    {"no_estimate", [](bool bad) { World w; const VertexRef v = w.scale(w.a); if (!bad) w.graph.setPerfEstimate(v, 20); w.graph.getPerfEstimate(v); }},
    {"estimator_of_nothing", [](bool bad) { World w; w.graph.registerPerfEstimator(bad ? "Nothing" : "Scale", [](const VertexIntrospector &, const Target &) { return VertexPerfEstimate(7); }); }},
    {"half_row_of_floats", [](bool bad) { World w; w.vertex("Sum", {{"rows", std::vector<Tensor>{w.a, bad ? w.variable(HALF, {4}, "halves", 0) : w.b}}, {"out", w.out[0]}}); w.execute(); }},
    {"unsigned_for_int", [](bool bad) { World w; w.vertex("Count", {{"counter", w.variable(bad ? UNSIGNED_INT : INT, {}, "n", 0)}}); w.execute(); }},
    {"char_for_bool", [](bool bad) { World w; w.vertex("Until", {{"left", w.ints[0]}, {"more", w.variable(bad ? CHAR : BOOL, {}, "more", 0)}}); w.execute(); }},
    {"tensor_for_a_member", [](bool bad) { World w; const VertexRef v = w.vertex("Scale", {{"data", w.a}}); bad ? w.graph.connect(v["factor"], w.b[0]) : w.graph.setInitialValue(v["factor"], 3.f); w.execute(); }},
    {"value_for_a_list", [](bool bad) { World w; const VertexRef v = w.vertex("Sum", {{"out", w.out[0]}}); bad ? w.graph.connect(v["rows"], 1.f) : w.graph.connect(v["rows"], w.m); w.execute(); }},
    {"instance_that_is_not_there", [](bool bad) { World w; w.graph.addVertex(w.cs, bad ? "Poke<poplar::VectorLayout::STRIDED_PTR32>" : "Poke<poplar::VectorLayout::ONE_PTR>"); }},
    {"codelet_not_added", [](bool bad) { World w; std::stringstream s("#include <poplar/Vertex.hpp>\nclass Late : public poplar::Vertex { public: poplar::Output<float> out; void compute() { *out = 1; } };"); if (!bad) w.graph.addCodelets(s); w.vertex("Late", {{"out", w.out[0]}}); w.execute(); }},
    {"name_of_a_template_alone", [](bool bad) { World w; w.graph.addVertex(w.cs, bad ? "Add" : "Add<half>"); }},
    {"case_of_a_field", [](bool bad) { World w; const VertexRef v = w.scale(w.a); w.graph.setInitialValue(v[bad ? "Factor" : "factor"], 1.f); }},
    {"size_of_a_field_that_is_not_there", [](bool bad) { World w; const VertexRef v = w.vertex("Table", {{"out", w.out}}); w.graph.setFieldSize(v[bad ? "tables" : "table"], 4); }},
    {"row_beyond_the_list", [](bool bad) { World w; const VertexRef v = w.vertex("Sum", {{"out", w.out[0]}}); w.graph.setFieldSize(v["rows"], 2); w.graph.connect(v["rows"][0], w.a); w.graph.connect(v["rows"][bad ? 2 : 1], w.b); if (bad) w.graph.connect(v["rows"][1], w.b); w.execute(); }},
    {"scalar_output_open", [](bool bad) { World w; const VertexRef v = w.vertex("Sum", {{"rows", w.m}}); if (!bad) w.graph.connect(v["out"], w.out[2]); w.execute(); }},
    {"scalar_input_open", [](bool bad) { World w; const VertexRef v = w.vertex("PokeScalar", {{"out", w.ints[0]}, {"at", 0}, {"meddle", false}}); if (!bad) w.graph.connect(v["in"], 4); w.execute(); }},
    {"list_open", [](bool bad) { World w; const VertexRef v = w.vertex("PokeRow", {{"row", 0}, {"at", 0}}); if (!bad) w.graph.connect(v["rows"], w.variable(HALF, {2, 4}, "h", 0)); w.execute(); }},
    {"matrices_in_a_list", [](bool bad) { World w; w.vertex("Sum", {{"rows", std::vector<Tensor>{bad ? w.m : w.m[0], w.m[1]}}, {"out", w.out[0]}}); w.execute(); }},
    {"two_values_for_a_member", [](bool bad) { World w; const VertexRef v = w.scale(w.a); w.graph.setInitialValue(v["factor"], std::vector<float>(bad ? 2 : 1)); }},
    // Shapes and types of tensors
    {"slice_beyond", [](bool bad) { World w; w.m.slice(2, bad ? 7 : 6, 1); }},
    {"slice_backwards", [](bool bad) { World w; w.a.slice(bad ? 5 : 4, 4); }},
    {"index_beyond", [](bool bad) { World w; w.m.index({3, bad ? 6u : 5u}); }},
    {"reshape", [](bool bad) { World w; w.m.reshape({bad ? 5u : 8u, 3}); }},
    {"concat", [](bool bad) { World w; concat(w.m, w.m.transpose().reshape({bad ? 6u : 4u, bad ? 4u : 6u}), 1); }},
    {"reinterpret", [](bool bad) { World w; w.a.reinterpret(bad ? HALF : INT); }},
    {"constant_values", [](bool bad) { World w; w.graph.addConstant<float>(FLOAT, {3}, bad ? std::vector<float>{1, 2} : std::vector<float>{1, 2, 3}); }},
    {"too_many_elements", [](bool bad) { World w; w.variable(FLOAT, {bad ? 1u << 17 : 1u, 1u << 16}, "huge"); }},
    {"copy_of_another_size", [](bool bad) { World w; w.prog.add(Copy(w.m.slice(0, bad ? 2 : 1).flatten(), w.b.slice(0, 6))); w.run(); }},
    {"copy_of_another_type", [](bool bad) { World w; w.prog.add(Copy(bad ? w.ints : w.a, w.b)); w.run(); }},
    {"copy_to_an_element_twice", [](bool bad) { World w; w.prog.add(Copy(w.a.slice(0, 2), bad ? concat(w.b.slice(0, 1), w.b.slice(0, 1)) : w.b.slice(0, 2))); w.run(); }},
    {"host_write_to_an_element_twice", [](bool bad) { World w; w.graph.createHostWrite("h", bad ? w.b.slice(0, 1).broadcast(3, 0) : w.b.slice(0, 3)); w.engine(); }},
    // PopLibs
    {"add_shapes", [](bool bad) { Libraries w; popops::add(w.graph, w.m, bad ? w.a : w.a.slice(0, 6), w.prog); w.run(); }},
    {"in_place_broadcast", [](bool bad) { Libraries w; const Tensor row = w.a.slice(0, 6); bad ? popops::addInPlace(w.graph, row, w.m, w.prog) : popops::addInPlace(w.graph, w.m, row, w.prog); w.run(); }},
    {"in_place_alias", [](bool bad) { Libraries w; popops::mulInPlace(w.graph, bad ? w.b.slice(0, 1).broadcast(8, 0) : w.b, w.a, w.prog); w.run(); }},
    {"add_types", [](bool bad) { Libraries w; popops::add(w.graph, w.a, bad ? w.ints : w.b, w.prog); w.run(); }},
    {"select_condition", [](bool bad) { Libraries w; popops::select(w.graph, w.a, w.b, bad ? w.a : popops::gt(w.graph, w.a, w.b, w.prog), w.prog); w.run(); }},
    {"map_placeholder", [](bool bad) { Libraries w; popops::map(w.graph, pe::_1 * (bad ? pe::_3 : pe::_2) + 1.f, {w.a, w.b}, w.prog); w.run(); }},
    {"product_shapes", [](bool bad) { Libraries w; poplin::matMul(w.graph, w.m, bad ? w.m : w.m.transpose(), w.prog); w.run(); }},
    {"product_types", [](bool bad) { Libraries w; poplin::matMul(w.graph, w.m, w.variable(bad ? HALF : FLOAT, {6, 2}, "h", 0), w.prog); w.run(); }},
    {"product_added_to", [](bool bad) { Libraries w; poplin::matMulAcc(w.graph, w.variable(FLOAT, {4, bad ? 3u : 4u}, "c", 0), 1.f, w.m, w.m.transpose(), w.prog); w.run(); }},
    {"reduce_dimension", [](bool bad) { Libraries w; popops::reduce(w.graph, w.m, {bad ? 2u : 1u}, popops::Operation::ADD, w.prog); w.run(); }},
    {"reduce_output", [](bool bad) { Libraries w; popops::reduceWithOutput(w.graph, w.m, w.a.slice(0, bad ? 6 : 4), {1}, popops::Operation::MAX, w.prog); w.run(); }},
    {"scaled_add_shapes", [](bool bad) { Libraries w; popops::scaledAddTo(w.graph, w.a, bad ? w.m.flatten() : w.b, 2.f, w.prog); w.run(); }},
    {"slice_offset_type", [](bool bad) { Libraries w; popops::dynamicSlice(w.graph, w.a, w.number(1, bad ? FLOAT : UNSIGNED_INT).reshape({1}), {0}, {2}, w.prog); w.run(); }},
    {"update_shape", [](bool bad) { Libraries w; popops::dynamicUpdate(w.graph, w.m, w.a.slice(0, bad ? 5 : 6).expand({0}), w.number(1).reshape({1}), {0}, {1}, w.prog); w.run(); }},
    {"gather_axis", [](bool bad) { Libraries w; popops::gather(w.graph, w.m, w.number(1).reshape({1}), bad ? 2 : 1, w.prog); w.run(); }},
    {"top_k", [](bool bad) { Libraries w; popops::topK(w.graph, w.prog, w.m, popops::TopKParams(bad ? 7 : 6, true, popops::SortOrder::ASCENDING)); w.run(); }},
    {"loop_step", [](bool bad) { Libraries w; w.prog.add(popops::countedLoop(w.graph, 0, 4, bad ? 0 : 1, [&](const Tensor &) { return Sequence(); })); w.run(); }},
    {"library_not_added", [](bool bad) { World w; if (!bad) popops::addCodelets(w.graph); popops::addInPlace(w.graph, w.a, w.b, w.prog); w.run(); }},
    {"rows_to_slice", [](bool bad) { Libraries w; const Tensor i = w.variable(UNSIGNED_INT, {3, bad ? 2u : 1u}, "i", 0); popops::multiSlice(w.graph, w.m, i, {0}, {1}, w.prog); w.run(); }},
    {"rows_to_add", [](bool bad) { Libraries w; const Tensor i = w.variable(UNSIGNED_INT, {2, 1}, "i", 0), s = w.variable(FLOAT, {2, 1, bad ? 5u : 6u}, "s", 0); popops::multiUpdateAdd(w.graph, w.m, s, i, w.number(1, FLOAT), {0}, {1}, w.prog); w.run(); }},
    {"groups_of_products", [](bool bad) { Libraries w; poplin::matMulGrouped(w.graph, w.m.reshape({2, 2, 6}), w.m.reshape({bad ? 1u : 2u, bad ? 4u : 2u, 6}).dimShuffle({0, 2, 1}), w.prog, FLOAT); w.run(); }},
    {"slice_too_long", [](bool bad) { Libraries w; popops::dynamicSlice(w.graph, w.m, w.number(0).reshape({1}), {1}, {bad ? 7u : 6u}, w.prog); w.run(); }},
    {"dimension_of_a_slice", [](bool bad) { Libraries w; popops::dynamicSlice(w.graph, w.m, w.number(0).reshape({1}), {bad ? 2u : 1u}, {1}, w.prog); w.run(); }},
    {"indices_of_a_gather", [](bool bad) { Libraries w; popops::gather(w.graph, w.m, w.variable(bad ? FLOAT : UNSIGNED_INT, {2}, "i", 0), 0, w.prog); w.run(); }},
    {"bools_added", [](bool bad) { Libraries w; const Tensor x = w.variable(bad ? BOOL : INT, {3}, "x", 0); popops::add(w.graph, x, x, w.prog); w.run(); }},
    {"logic_of_floats", [](bool bad) { Libraries w; const Tensor x = w.variable(bad ? FLOAT : BOOL, {3}, "x", 0); popops::logicalAnd(w.graph, x, x, w.prog); w.run(); }},
    {"sine_of_integers", [](bool bad) { Libraries w; popops::sin(w.graph, bad ? w.ints : w.a, w.prog); w.run(); }},
    {"cast_of_another_shape", [](bool bad) { Libraries w; w.prog.add(popops::cast(w.graph, w.ints, w.a.slice(0, bad ? 7 : 8))); w.run(); }},
    {"one_hot_rows", [](bool bad) { Libraries w; popops::encodeOneHot(w.graph, w.ints.slice(0, bad ? 3 : 4), w.m, w.prog); w.run(); }},
    {"seed", [](bool bad) { World w; poprand::addCodelets(w.graph); const Tensor seed = w.variable(UNSIGNED_INT, {bad ? 3u : 2u}, "seed", 0); poprand::uniform(w.graph, &seed, 1, w.a, FLOAT, 0, 1, w.prog); w.run(); }},
    {"kernel_and_channels", [](bool bad) { Libraries w; const poplin::ConvParams p(FLOAT, 1, {4}, {3}, 2, 2, 1); const Tensor in = w.m.flatten().slice(0, 8).reshape({1, 2, 4}), k = w.variable(FLOAT, {1, 2, bad ? 3u : 2u, 3}, "k", 0); poplin::convolution(w.graph, in, k, p, false, w.prog); w.run(); }},
    {"reduction_of_bools", [](bool bad) { Libraries w; popops::reduce(w.graph, w.variable(BOOL, {2, 3}, "x", 0), {0}, bad ? popops::Operation::ADD : popops::Operation::LOGICAL_AND, w.prog); w.run(); }},
    {"several_reductions", [](bool bad) { Libraries w; std::vector<Tensor> out; popops::reduceMany(w.graph, {{w.m, {0}, {popops::Operation::ADD}}, {w.a, {bad ? 1u : 0u}, {popops::Operation::MAX}}}, out, w.prog); w.run(); }},
    {"gathered_by_replicas", [](bool bad) { World w(2); popops::addCodelets(w.graph); gcl::allReduceToDestinationCrossReplica(w.graph, w.a, w.b.slice(0, bad ? 7 : 8), gcl::CollectiveOperator::ADD, w.prog, {}); w.run(); }},
    {"rows_made_fewer", [](bool bad) { World w; const VertexRef v = w.vertex("Sum", {{"rows", w.m}, {"out", w.out[0]}}); w.graph.setFieldSize(v["rows"], bad ? 3 : 4); w.execute(); }},
    {"output_broadcast", [](bool bad) { World w; w.vertex("Add<float>", {{"a", w.m[0]}, {"b", w.m[0]}, {"out", bad ? concat(w.out.slice(0, 3), w.out.slice(2, 5)) : w.out.slice(0, 6)}}); w.execute(); }},
    {"rows_to_slice_rank", [](bool bad) { Libraries w; popops::multiSlice(w.graph, w.m, bad ? w.number(1) : w.number(1).reshape({1, 1}), {0}, {1}, w.prog); w.run(); }},
    {"logic_reduction_of_numbers", [](bool bad) { Libraries w; popops::reduce(w.graph, w.variable(bad ? INT : BOOL, {2, 3}, "x", 0), {0}, popops::Operation::LOGICAL_OR, w.prog); w.run(); }},
    {"not_of_a_number", [](bool bad) { Libraries w; popops::logicalNot(w.graph, w.variable(bad ? INT : BOOL, {2, 3}, "x", 0), w.prog); w.run(); }},
    // Memory
    {"out_of_memory", [](bool bad) { fill(bad ? 15000 : 20000, false); }},
    {"out_of_memory_for_what_is_gathered", [](bool bad) { fill(bad ? 15000 : 20000, true); }},
    {"out_of_memory_where_it_is_allowed", [](bool bad) { fill(15000, false, bad ? OptionFlags{} : OptionFlags{{"debug.allowOutOfMemory", "true"}}); }},
    {"streaming_memory", [](bool bad) { IPUModel m("ipu2"); m.emulator.streamingBytesPerIpu = 100; Graph g(m.createDevice()); g.addRemoteBuffer("far", FLOAT, 5, bad ? 6 : 5); Engine e(g, Sequence()); }},
    {"state_of_a_vertex", [](bool bad) { const Device d = smallMemory(15000); Graph g(d); g.addCodelets(table); const Tensor out = g.addVariable(FLOAT, {4}, "out"); g.setTileMapping(out, 2); const ComputeSet cs = g.addComputeSet("look up"); const VertexRef v = g.addVertex(cs, "Table", {{"out", out}}); g.setFieldSize(v["table"], bad ? 3000 : 1000); g.setTileMapping(v, 2); Engine(g, Execute(cs)).loadAndRun(d); }},
    {"too_many_vertices", [](bool bad) { const Device d = smallMemory(15000); Graph g(d); g.addCodelets(table); const Tensor t = g.addVariable(INT, {1500}, "t"); g.setTileMapping(t, 3); const ComputeSet cs = g.addComputeSet("count"); for (unsigned i = 0; i < (bad ? 1500 : 50); ++i) g.setTileMapping(g.addVertex(cs, "Count", {{"counter", t[i]}}), 3); Engine(g, Execute(cs)).loadAndRun(d); }},
    {"live_at_one_time", [](bool bad) { const Device d = smallMemory(20000); Graph g(d); const Tensor in = g.addVariable(FLOAT, {2000}, VariableMappingMethod::LINEAR, "in"), x = g.addVariable(FLOAT, {2000}, "x"), y = g.addVariable(FLOAT, {2000}, "y"); map(g, {x, y}, 1); Sequence p; p.add(Copy(in, x)); if (!bad) p.add(Copy(x, in)); p.add(Copy(in, y)); p.add(Copy(y, in)); if (bad) p.add(Copy(x, in)); Engine(g, p).loadAndRun(d); }},
    {"kept_for_the_host", [](bool bad) { const Device d = smallMemory(20000); Graph g(d); const Tensor in = g.addVariable(FLOAT, {2000}, VariableMappingMethod::LINEAR, "in"), x = g.addVariable(FLOAT, {2000}, "x"), y = g.addVariable(FLOAT, {2000}, "y"); map(g, {x, y}, 1); if (bad) g.createHostRead("x", x); Engine(g, Sequence(Copy(in, x), Copy(x, in), Copy(in, y), Copy(y, in))).loadAndRun(d); }},
    {"big_constant", [](bool bad) { const Device d = smallMemory(15000); Graph g(d); const Tensor c = g.addConstant(FLOAT, {bad ? 3500u : 1000u}, std::vector<float>(bad ? 3500 : 1000, 2.f), "table"), t = g.addVariable(FLOAT, {bad ? 3500u : 1000u}, VariableMappingMethod::LINEAR, "t"); g.setTileMapping(c, 3); Engine(g, Copy(c, t)).loadAndRun(d); }},
    {"copy_that_turns_on_a_tile", [](bool bad) { const Device d = smallMemory(15000); Graph g(d); popops::addCodelets(g); const Tensor t = g.addVariable(FLOAT, {bad ? 60u : 30u, 40}, "t"); g.setTileMapping(t, 0); Sequence p; const Tensor u = popops::add(g, t, t, p); g.createHostRead("t", t); g.createHostRead("u", u); Engine(g, p).loadAndRun(d); }},
    {"streaming_memory_of_two", [](bool bad) { IPUModel m("ipu2"); m.emulator.streamingBytesPerIpu = 100; Graph g(m.createDevice()); g.addRemoteBuffer("one", FLOAT, 5, 3); g.addRemoteBuffer("two", HALF, 10, bad ? 3 : 2); Engine e(g, Sequence()); }},
    // What was never written, and what should not be
    {"undefined_input", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.vertex("Add<float>", {{"a", w.a}, {"b", w.b}, {"out", w.out}}); w.prog.add(WriteUndef(bad ? w.b.slice(6, 8) : w.out)); w.execute(); }},
    {"undefined_to_the_host", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.graph.createHostRead("h", w.a); w.prog.add(WriteUndef(bad ? w.a : w.b)); Engine e = w.engine(); e.loadAndRun(w.device); readBack<float>(e, "h", 8); }},
    {"undefined_to_a_stream", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; float x[8]; const DataStream to = w.graph.addDeviceToHostFIFO("s", FLOAT, 8); w.prog.add(WriteUndef(w.a)); if (!bad) w.prog.add(Copy(w.b, w.a)); w.prog.add(Copy(w.a, to)); Engine e = w.engine(); e.connectStream("s", x, x + 8); e.loadAndRun(w.device); }},
    {"undefined_decision", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.prog.add(WriteUndef(w.ints.slice(0, bad ? 2 : 1))); w.prog.add(If(w.ints[1], Sequence(), Sequence())); w.run(); }},
    {"undefined_sum", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); Libraries w; w.prog.add(WriteUndef(bad ? w.m[2] : w.a)); popops::reduce(w.graph, w.m, {0, 1}, popops::Operation::ADD, w.prog); w.run(); }},
    {"beyond_the_end", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Reach", {{"in", w.a}, {"out", w.b.slice(0, 4)}, {"first", 0}, {"length", bad ? 5 : 4}}); w.execute(); }},
    {"before_the_begin", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Reach", {{"in", w.a}, {"out", w.b.slice(4, 8)}, {"first", bad ? -1 : 0}, {"length", 2}}); w.execute(); }},
    {"beyond_a_column", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Reach", {{"in", w.a}, {"out", w.m.slice(2, 3, 1).flatten()}, {"first", 2}, {"length", bad ? 3 : 2}}); w.execute(); }},
    {"workers_beyond", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Overrun", {{"out", w.out}, {"length", bad ? 9u : 8u}}); w.execute(); }},
    {"input_written", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Meddle", {{"in", w.a}, {"out", w.b}, {"where", bad ? 3 : -1}}); w.execute(); }},
    {"rest_of_a_part", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.prog = Sequence(WriteUndef(w.a), Copy(w.b.slice(0, 5), w.a.slice(0, 5)), Copy(w.b.slice(0, 2), w.a.slice(bad ? 6 : 5, bad ? 8 : 7)), Copy(w.a.slice(bad ? 0 : 1, bad ? 6 : 7), w.out.slice(0, 6)), PrintTensor("out", w.out)); w.run(); }},
    {"undefined_in_a_branch", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.scale(w.m[1]); w.prog.add(If(w.number(bad, BOOL), WriteUndef(w.m[1].slice(5, 6)), Sequence())); w.execute(); }},
    {"undefined_the_second_time", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.scale(w.a); w.prog.add(Repeat(bad ? 2 : 1, Sequence(Execute(w.cs), WriteUndef(w.a.slice(7, 8))))); w.run(); }},
    {"undefined_row_of_a_list", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.vertex("Sum", {{"rows", std::vector<Tensor>{w.a, w.b.slice(0, 3)}}, {"out", w.out[0]}}); w.prog.add(WriteUndef(w.b.slice(bad ? 2 : 3, 8))); w.execute(); }},
    {"undefined_through_a_reinterpret", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.vertex("Bits", {{"data", w.a.reinterpret(INT).slice(0, bad ? 5 : 4)}}); w.prog.add(WriteUndef(w.a.slice(4, 8))); w.execute(); }},
    {"undefined_in_a_product", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); Libraries w; w.prog.add(WriteUndef(bad ? w.m[3].slice(0, 1) : w.out)); poplin::matMul(w.graph, w.m, w.m.transpose(), w.prog); w.run(); }},
    {"undefined_counter", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w; w.vertex("Count", {{"counter", w.ints[3]}}); w.prog.add(WriteUndef(w.ints)); if (!bad) w.prog.add(Copy(w.number(0, INT), w.ints[3])); w.execute(); }},
    {"undefined_to_another_replica", [](bool bad) { const Setting s("SNNC_CHECK_UNDEFINED"); World w(2); w.graph.createHostRead("h", w.b); w.prog.add(WriteUndef(bad ? w.a.slice(3, 4) : w.out)); w.prog.add(CrossReplicaCopy(w.a, w.b, {{0, 1}, {1, 0}})); Engine e = w.engine(); e.loadAndRun(w.device); readBack<float>(e, "h", 16); }},
    {"span_end", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Poke<poplar::VectorLayout::SPAN>", {{"out", w.a.slice(2, 6)}, {"at", bad ? 4 : 3}}); w.execute(); }},
    {"short_span_begin", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Poke<poplar::VectorLayout::SHORT_SPAN>", {{"out", w.a.slice(2, 6)}, {"at", bad ? -1 : 0}}); w.execute(); }},
    {"one_ptr_end", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Poke<poplar::VectorLayout::ONE_PTR>", {{"out", w.a}, {"at", bad ? 8 : 7}}); w.execute(); }},
    {"compact_ptr_end", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Poke<poplar::VectorLayout::COMPACT_PTR>", {{"out", w.m[2]}, {"at", bad ? 6 : 5}}, 2); w.execute(); }},
    {"scaled_32_end", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Poke<poplar::VectorLayout::SCALED_PTR32>", {{"out", w.m[0]}, {"at", bad ? 7 : 0}}, 1); w.execute(); }},
    {"scaled_64_begin", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Poke<poplar::VectorLayout::SCALED_PTR64>", {{"out", w.m[1]}, {"at", bad ? -2 : 5}}); w.execute(); }},
    {"scaled_128_end", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("Poke<poplar::VectorLayout::SCALED_PTR128>", {{"out", w.m[1]}, {"at", bad ? 6 : 5}}, 3); w.execute(); }},
    {"half_row_end", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("PokeRow", {{"rows", w.variable(HALF, {3, 5}, "h", 0)}, {"row", 1}, {"at", bad ? 5 : 4}}); w.execute(); }},
    {"list_row_begin", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("PokeList<poplar::VectorListLayout::DELTAN>", {{"rows", w.m}, {"row", 2}, {"at", bad ? -1 : 2}}); w.execute(); }},
    {"list_row_end", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("PokeList<poplar::VectorListLayout::COMPACT_DELTAN>", {{"rows", w.m.slice(0, 2)}, {"row", 1}, {"at", bad ? 6 : 2}}); w.execute(); }},
    {"behind_a_scalar", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("PokeScalar", {{"out", w.ints[2]}, {"in", w.ints[4]}, {"at", int(bad)}, {"meddle", false}}); w.execute(); }},
    {"scalar_input_written", [](bool bad) { const Setting s("SNNC_CHECK_BOUNDS"); World w; w.vertex("PokeScalar", {{"out", w.ints[2]}, {"in", w.ints[4]}, {"at", 0}, {"meddle", bad}}); w.execute(); }},
    // Streams and the host
    {"stream_elements", [](bool bad) { World w; w.prog.add(Copy(w.graph.addHostToDeviceFIFO("s", FLOAT, bad ? 6 : 8), w.a)); }},
    {"stream_type", [](bool bad) { World w; w.prog.add(Copy(w.a, w.graph.addDeviceToHostFIFO("s", bad ? HALF : FLOAT, 8))); }},
    {"stream_direction", [](bool bad) { World w; const DataStream s = bad ? w.graph.addHostToDeviceFIFO("s", FLOAT, 8) : w.graph.addDeviceToHostFIFO("s", FLOAT, 8); w.prog.add(Copy(w.a, s)); }},
    {"stream_buffer", [](bool bad) { World w; float x[20]; w.prog.add(Copy(w.graph.addHostToDeviceFIFO("s", FLOAT, 8), w.a)); Engine e = w.engine(); e.connectStream("s", x, x + (bad ? 12 : 16)); }},
    {"stream_not_connected", [](bool bad) { World w; float x[8] = {}; w.prog.add(Copy(w.graph.addHostToDeviceFIFO("s", FLOAT, 8), w.a)); Engine e = w.engine(); if (!bad) e.connectStream("s", x); e.loadAndRun(w.device); }},
    {"stream_disconnected", [](bool bad) { World w; float x[8] = {}; w.prog.add(Copy(w.graph.addHostToDeviceFIFO("s", FLOAT, 8), w.a)); Engine e = w.engine(); e.connectStream("s", x); if (bad) e.disconnectStream("s"); e.loadAndRun(w.device); }},
    {"stream_unknown", [](bool bad) { World w; float x[1]; w.graph.addHostToDeviceFIFO("s", FLOAT, 1); Engine e = w.engine(); e.connectStream(bad ? "t" : "s", x, x + 1); }},
    {"stream_twice", [](bool bad) { World w; w.graph.addHostToDeviceFIFO("s", FLOAT, 1); w.graph.addDeviceToHostFIFO(bad ? "s" : "t", FLOAT, 1); }},
    {"callback_fails", [](bool bad) { World w; w.prog.add(Copy(w.graph.addHostToDeviceFIFO("s", FLOAT, 1), w.a.slice(0, 1))); Engine e = w.engine(); e.connectStreamToCallback("s", std::make_unique<Thrower>(bad)); e.loadAndRun(w.device); }},
    {"host_read_size", [](bool bad) { World w; w.graph.createHostRead("h", w.a); Engine e = w.engine(); e.load(w.device); readBack<float>(e, "h", bad ? 9 : 8); }},
    {"host_read_of_halves_as_floats", [](bool bad) { World w; w.graph.createHostRead("h", w.variable(HALF, {4}, "halves", 0)); Engine e = w.engine(); e.load(w.device); bad ? void(readBack<float>(e, "h", 4)) : void(readBack<std::uint16_t>(e, "h", 4)); }},
    {"host_name", [](bool bad) { World w; w.graph.createHostRead("h", w.a); Engine e = w.engine(); e.load(w.device); readBack<float>(e, bad ? "H" : "h", 8); }},
    {"host_write_to_what_is_read", [](bool bad) { World w; bad ? w.graph.createHostRead("h", w.a) : w.graph.createHostWrite("h", w.a); Engine e = w.engine(); e.load(w.device); write(e, "h", std::vector<float>(8)); }},
    {"host_access_twice", [](bool bad) { World w; w.graph.createHostRead("h", w.a); bad ? w.graph.createHostRead("h", w.b) : w.graph.createHostWrite("h", w.a); }},
    {"stream_in_a_loop", [](bool bad) { World w; float x[8] = {}; const DataStream s = w.graph.addHostToDeviceFIFO("s", FLOAT, 4); w.vertex("Until", {{"left", w.ints[0]}, {"more", w.variable(BOOL, {}, "more", 0)}}); const Tensor more = w.variable(BOOL, {}, "go", 0); w.prog.add(RepeatWhileTrue(Execute(w.cs), more, Sequence(Copy(s, w.a.slice(0, bad ? 5 : 4))))); Engine e = w.engine(); e.connectStream("s", x, x + 8); e.loadAndRun(w.device); }},
    {"buffer_of_a_loop", [](bool bad) { World w; float x[8] = {}; w.prog.add(Repeat(3, Copy(w.a, w.graph.addDeviceToHostFIFO("s", FLOAT, 8)))); Engine e = w.engine(); e.connectStream("s", x, x + (bad ? 6 : 8)); e.loadAndRun(w.device); }},
    {"stream_of_a_case", [](bool bad) { World w; float x[1] = {}; const DataStream s = w.graph.addHostToDeviceFIFO("s", FLOAT, 1), t = w.graph.addHostToDeviceFIFO("t", FLOAT, 1); w.prog.add(Switch(w.number(1, INT), {{0, Copy(s, w.a.slice(0, 1))}, {1, Copy(t, w.a.slice(1, 2))}})); Engine e = w.engine(); e.connectStream("s", x); if (!bad) e.connectStream("t", x); e.loadAndRun(w.device); }},
    {"stream_of_several_tensors", [](bool bad) { World w; const DataStream s = w.graph.addDeviceToHostFIFO("s", FLOAT, 16); w.prog.add(Copy(concat(w.a, w.b.slice(0, bad ? 7 : 8)), s)); w.engine(); }},
    {"stream_of_replicas", [](bool bad) { World w(2); float x[24] = {}; w.prog.add(Copy(w.graph.addHostToDeviceFIFO("s", FLOAT, 8), w.a)); Engine e = w.engine(); e.connectStream("s", x, x + (bad ? 12 : 16)); e.loadAndRun(w.device); }},
    {"stream_of_another_graph", [](bool bad) { World w, other; float x[8] = {}; w.prog.add(Copy((bad ? other : w).graph.addHostToDeviceFIFO("s", FLOAT, 8), w.a)); Engine e = w.engine(); e.connectStream("s", x); e.loadAndRun(w.device); }},
    {"host_write_short", [](bool bad) { World w; w.graph.createHostWrite("h", w.m.slice(1, 3, 1)); Engine e = w.engine(); e.load(w.device); write(e, "h", std::vector<float>(bad ? 7 : 8)); }},
    {"remote_buffer_of_another_type", [](bool bad) { World w; const RemoteBuffer r = w.graph.addRemoteBuffer("far", bad ? UNSIGNED_INT : INT, 8, 2); w.prog.add(Copy(w.ints, r, w.number(1))); w.run(); }},
    {"list_of_rows", [](bool bad) { World w; const RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 2, 4); const Tensor rows = w.graph.addConstant<unsigned>(UNSIGNED_INT, {4}, {0, 3, bad ? 4u : 2u, 1}, "rows"); w.graph.setTileMapping(rows, 0); w.prog.add(Copy(r, w.a, rows)); w.run(); }},
    // Engines
    {"not_loaded", [](bool bad) { World w; Engine e = w.engine(); if (!bad) e.load(w.device); e.run(); }},
    {"no_such_program", [](bool bad) { World w; Engine e(w.graph, {w.prog, w.prog}); e.load(w.device); e.run(bad ? 2 : 1); }},
    {"another_machine", [](bool bad) { World w; Engine e = w.engine(); e.load(smallDevice(1, bad ? 8 : 4)); }},
    {"engine_option", [](bool bad) { World w; w.run({{bad ? "exchnage.enablePrefetch" : "exchange.enablePrefetch", "true"}}); }},
    {"options_of_the_environment", [](bool bad) { const Setting s("POPLAR_ENGINE_OPTIONS", bad ? "{\"opt.internalExchangeOptimisationTarget\": }" : " { \"target.hostSyncTimeout\" : 60, \"debug.instrument\":\"true\"} "); World w; w.run(); }},
    {"aborts", [](bool bad) { World w; w.prog.add(AbortOnCondition(w.number(bad, BOOL), "it overflowed")); w.run(); }},
    {"no_such_machine", [](bool bad) { IPUModel model(bad ? "ipu3" : "ipu21"); model.createDevice(); }},
    // Remote buffers
    {"row_that_is_not_there", [](bool bad) { World w; w.prog.add(Copy(w.graph.addRemoteBuffer("far", FLOAT, 8, 3), w.a, w.number(bad ? 3 : 2))); w.run(); }},
    {"row_before_the_first", [](bool bad) { World w; w.prog.add(Copy(w.a, w.graph.addRemoteBuffer("far", FLOAT, 8, 3), w.number(bad ? -1 : 0, INT))); w.run(); }},
    {"rows_and_elements", [](bool bad) { World w; const RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 4, 3); w.prog.add(Copy(r, w.a, w.variable(UNSIGNED_INT, {bad ? 3u : 2u}, "rows", 0))); w.run(); }},
    {"remote_name", [](bool bad) { World w; float x[8]; w.graph.addRemoteBuffer("far", FLOAT, 8, 3); Engine e = w.engine(); e.load(w.device); e.copyFromRemoteBuffer(bad ? "near" : "far", x, 1); }},
    {"remote_row_of_the_host", [](bool bad) { World w; float x[8] = {}; w.graph.addRemoteBuffer("far", FLOAT, 8, 3); Engine e = w.engine(); e.load(w.device); e.copyToRemoteBuffer(x, "far", bad ? 3 : 2); }},
    {"remote_replica", [](bool bad) { World w(2); float x[8]; w.graph.addRemoteBuffer("far", FLOAT, 8); Engine e = w.engine(); e.load(w.device); e.copyFromRemoteBuffer("far", x, 0, bad ? 2 : 1); }},
    // Replicas
    {"replicas_and_ipus", [](bool bad) { Graph g(smallDevice(4), replication_factor(bad ? 3 : 2)); }},
    {"replica_receives_twice", [](bool bad) { World w(2); w.prog.add(CrossReplicaCopy(w.a, w.b, {{0, 1}, {1, bad ? 1 : 0}})); w.run(); }},
    {"replica_that_is_not_there", [](bool bad) { World w(2); w.prog.add(CrossReplicaCopy(w.a, w.b, {{0, 1}, {bad ? 2 : 1, 0}})); w.run(); }},
    {"replicas_disagree", [](bool bad) { World w(2); const Tensor i = w.graph.addReplicationIndexConstant(); w.graph.setTileMapping(i, 0); w.prog.add(If(bad ? i : w.number(1), Sequence(), Sequence())); w.run(); }},
    {"replicas_differ", [](bool bad) { World w(2); const Tensor i = w.graph.addReplicationIndexConstant("i"); w.graph.setTileMapping(i, 0); w.prog.add(AssumeEqualAcrossReplicas(bad ? i : w.number(1))); w.run(); }},
    {"host_values_of_all_replicas", [](bool bad) { World w(2); w.graph.createHostRead("h", w.a); Engine e = w.engine(); e.load(w.device); readBack<float>(e, "h", bad ? 8 : 16); }},
    {"callback_of_a_replica", [](bool bad) { World w(2); w.graph.addHostToDeviceFIFO("s", FLOAT, 1); Engine e = w.engine(); e.connectStreamToCallback("s", bad ? 2u : 1u, [](void *) {}); }},
    {"groups_of_replicas", [](bool bad) { World w(6); popops::addCodelets(w.graph); gcl::allReduceCrossReplica(w.graph, w.a, gcl::CollectiveOperator::ADD, w.prog, {gcl::CommGroupType::ORTHOGONAL, bad ? 4u : 3u}); w.run(); }},
    // Control programs
    {"predicate_type", [](bool bad) { World w; RepeatWhileFalse loop(Sequence(), bad ? w.a[0] : w.ints[0], Sequence()); }},
    {"predicate_size", [](bool bad) { World w; If(w.ints.slice(0, bad ? 2 : 1), Sequence(), Sequence()); }},
    {"case_twice", [](bool bad) { World w; Switch(w.ints[0], {{1, Sequence()}, {bad ? 1 : 2, Sequence()}}); }},
    {"no_case", [](bool bad) { World w; w.prog.add(Switch::switchWithBoundsChecking(w.ints[0], {{bad ? 1 : 0, Sequence()}})); w.run(); }},
    {"recursion", [](bool bad) { World w; const Function f = w.graph.addFunction(Sequence()); const Function g = w.graph.addFunction(Sequence(Call(bad ? 1 : f))); w.prog.add(Call(g)); w.run(); }},
    {"no_such_function", [](bool bad) { World w; const Function f = w.graph.addFunction(Sequence()); w.prog.add(Call(f + bad)); w.run(); }},
    {"switch_on_a_float", [](bool bad) { World w; Switch(bad ? w.a[0] : w.ints[0], {{0, Sequence()}}); }},
    {"abort_in_a_loop", [](bool bad) { World w; w.vertex("Count", {{"counter", w.ints[0]}}); Sequence body; body.add(Execute(w.cs)); body.add(If(w.ints[0], bad ? Program(Abort("third time")) : Program(Sequence()), Sequence())); w.prog.add(Repeat(3, body)); w.run(); }},
    {"replica_copy_of_another_size", [](bool bad) { World w(2); w.prog.add(CrossReplicaCopy(w.a.slice(0, bad ? 7 : 8), w.b, {{0, 1}, {1, 0}})); w.run(); }},
    {"replica_copy_of_another_type", [](bool bad) { World w(2); w.prog.add(CrossReplicaCopy(bad ? w.ints : w.a, w.b, {{0, 1}, {1, 0}})); w.run(); }},
    {"compute_set_of_another_graph", [](bool bad) { World w, other; const ComputeSet more = other.graph.addComputeSet("more"); w.prog.add(Execute(bad ? more : w.cs)); w.run(); }},
    {"predicate_of_another_graph", [](bool bad) { World w, other; w.prog.add(If((bad ? other : w).ints[0], Sequence(), Sequence())); w.run(); }},
    {"broken_executable", [](bool bad) { World w; std::stringstream s; compileGraph(w.graph, {w.prog}).serialize(s); std::string text = s.str(); if (bad) text.resize(text.size() / 2); std::stringstream half(text); Executable::deserialize(half); }},
    {"program_of_an_executable", [](bool bad) { World w; w.prog.add(Copy(w.a, w.b)); Engine e(compileGraph(w.graph, {w.prog})); e.load(w.device); e.run(bad); }},
};

std::string demangled(const std::exception &e) {
  char *name = abi::__cxa_demangle(typeid(e).name(), nullptr, nullptr, nullptr);
  const std::string text = name;
  std::free(name);
  return text;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  const bool bad = std::string(argv[1]) == "bad";
  table = argv[2];
  std::ostringstream ignored;
  std::streambuf *const errors = std::cerr.rdbuf(ignored.rdbuf());
  for (const auto &[name, fault] : faults) {
    std::cout << name << "\t" << std::flush;
    try {
      fault(bad);
      std::cout << "none";
    } catch (const std::exception &e) {
      std::string text = e.what();
      for (char &c : text)
        c = c == '\n' ? ' ' : c;
      std::cout << demangled(e) << ": " << text;
    }
    std::cout << "\n";
  }
  std::cerr.rdbuf(errors);
  return 0;
}
