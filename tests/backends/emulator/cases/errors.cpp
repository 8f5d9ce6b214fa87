// Every check of the API, provoked.
#include "case.hpp"

namespace {

struct World {
  Device device = smallDevice();
  Graph graph{device.getTarget()};
  Tensor a, b, out;
  ComputeSet cs;
  World() {
    graph.addCodelets(CODELETS);
    a = graph.addVariable(FLOAT, {8}, "a");
    b = graph.addVariable(FLOAT, {8}, "b");
    out = graph.addVariable(FLOAT, {8}, "out");
    map(graph, {a, b, out}, 0);
    cs = graph.addComputeSet("work");
  }
  VertexRef scale(const Tensor &t, unsigned tile = 0) {
    VertexRef v = graph.addVertex(cs, "Scale", {{"data", t}});
    graph.setInitialValue(v["factor"], 2);
    graph.setTileMapping(v, tile);
    return v;
  }
  VertexRef add(const Tensor &x, const Tensor &y, const Tensor &z, unsigned tile = 0) {
    VertexRef v = graph.addVertex(cs, "Add<float>", {{"a", x}, {"b", y}, {"out", z}});
    graph.setTileMapping(v, tile);
    return v;
  }
  void build() {
    Engine engine(graph, Execute(cs));
    std::cout << "built\n";
  }
};

const std::initializer_list<Scenario> scenarios = {
    {"write_write", [] { World w; w.scale(w.a.slice(0, 5)); w.scale(w.a.slice(3, 8), 1); w.build(); }},
    {"read_write", [] { World w; w.scale(w.a.slice(0, 4)); w.add(w.a.slice(3, 4), w.b.slice(0, 1), w.out.slice(0, 1), 2); w.build(); }},
    {"strided_race", [] { World w; w.scale(w.a.subSample(2, 0)); w.scale(w.a.slice(1, 8).subSample(3, 0), 1); w.build(); }},
    {"interleaved", [] { World w; w.scale(w.a.subSample(2, 0)); w.scale(w.a.slice(1, 8).subSample(2, 0), 1); w.build(); }},
    {"disjoint", [] { World w; w.scale(w.a.slice(0, 4)); w.scale(w.a.slice(4, 8), 1); w.build(); }},
    {"same_vertex", [] { World w; w.add(w.a, w.a, w.a); w.build(); }},
    {"shared_read", [] { World w; w.add(w.a, w.b, w.out.slice(0, 8)); w.scale(w.b.slice(0, 0), 1); w.build(); }},
    {"unmapped_vertex", [] { World w; w.graph.addVertex(w.cs, "Scale", {{"data", w.a}}); w.build(); }},
    {"unmapped_tensor", [] { World w; Tensor t = w.graph.addVariable(FLOAT, {8}, "ghost"); w.graph.setTileMapping(t.slice(0, 3), 1); w.scale(t); w.build(); }},
    {"bad_tile", [] { World w; w.graph.setTileMapping(w.a, 4); }},
    {"unconnected", [] { World w; VertexRef v = w.graph.addVertex(w.cs, "Add<float>", {{"a", w.a}, {"out", w.out}}); w.graph.setTileMapping(v, 0); w.build(); }},
    {"connected_twice", [] { World w; VertexRef v = w.scale(w.a); w.graph.connect(v["data"], w.b); }},
    {"unknown_vertex", [] { World w; w.graph.addVertex(w.cs, "Nothing"); }},
    {"unknown_field", [] { World w; VertexRef v = w.scale(w.a); w.graph.connect(v["datum"], w.b); }},
    {"wrong_type", [] { World w; Tensor t = w.graph.addVariable(INT, {8}, "ints"); w.scale(t); }},
    {"wrong_rank", [] { World w; w.scale(w.a.reshape({2, 4})); }},
    {"slice_outside", [] { World w; w.a.slice(4, 9); }},
    {"index_outside", [] { World w; w.a[8]; }},
    {"reshape_wrong", [] { World w; w.a.reshape({3, 3}); }},
    {"concat_wrong", [] { World w; concat(w.a.reshape({2, 4}), w.b.reshape({4, 2}), 1); }},
    {"constant_written", [] { World w; Tensor c = w.graph.addConstant(FLOAT, {8}, 1.f, "one"); w.graph.setTileMapping(c, 0); w.scale(c); w.build(); }},
    {"copy_sizes", [] { World w; Copy copy(w.a, w.b.slice(0, 4)); }},
    {"copy_types", [] { World w; Copy copy(w.a, w.graph.addVariable(INT, {8}, "ints")); }},
    {"copy_aliases", [] { World w; Engine engine(w.graph, Copy(w.a, w.b.slice(0, 1).broadcast(8, 0))); }},
    {"predicate_type", [] { World w; RepeatWhileTrue loop(Sequence(), w.a[0], Sequence()); }},
    {"predicate_size", [] { World w; If(w.graph.addVariable(INT, {2}, "p"), Sequence(), Sequence()); }},
    {"stream_unconnected", [] { World w; DataStream s = w.graph.addHostToDeviceFIFO("in", FLOAT, 8); Engine e(w.graph, Copy(s, w.a)); e.loadAndRun(w.device); }},
    {"stream_elements", [] { World w; DataStream s = w.graph.addHostToDeviceFIFO("in", FLOAT, 4); Copy copy(s, w.a); }},
    {"stream_buffer", [] { World w; DataStream s = w.graph.addHostToDeviceFIFO("in", FLOAT, 8); Engine e(w.graph, Copy(s, w.a)); float x[9]; e.connectStream("in", x, x + 9); }},
    {"stream_name", [] { World w; Engine e(w.graph, Sequence()); float x[1]; e.connectStream("in", x); }},
    {"stream_direction", [] { World w; DataStream s = w.graph.addDeviceToHostFIFO("out", FLOAT, 8); Copy copy(s, w.a); }},
    {"handle_size", [] { World w; w.graph.createHostRead("a", w.a); Engine e(w.graph, Sequence()); e.load(w.device); readBack<float>(e, "a", 7); }},
    {"handle_unknown", [] { World w; w.graph.createHostRead("a", w.a); Engine e(w.graph, Sequence()); e.load(w.device); write<float>(e, "a", std::vector<float>(8)); }},
    {"not_loaded", [] { World w; Engine e(w.graph, Sequence()); e.run(); }},
    {"no_program", [] { World w; Engine e(w.graph, Sequence()); e.load(w.device); e.run(1); }},
    {"other_device", [] { World w; Engine e(w.graph, Sequence()); e.load(smallDevice(2)); }},
    {"bad_version", [] { IPUModel model("ipu9"); }},
    {"no_file", [] { World w; w.graph.addCodelets("nowhere.cpp"); }},
    {"broken_codelet", [] { World w; std::stringstream s("#include <poplar/Vertex.hpp>\nclass X : public poplar::Vertex { nonsense };"); w.graph.addCodelets(s); }},
    {"no_vertex", [] { World w; std::stringstream s("int x;"); w.graph.addCodelets(s); }},
    {"half_words", [] { World w; Tensor t = w.graph.addVariable(UNSIGNED_SHORT, {6}, "t"); w.graph.setTileMapping(t, 0); VertexRef v = w.graph.addVertex(w.cs, "HalfWords", {{"data", t}}); w.graph.setTileMapping(v, 0); Engine e(w.graph, Execute(w.cs)); e.loadAndRun(w.device); std::cout << "built\n"; }},
    {"remote_type", [] { World w; RemoteBuffer r = w.graph.addRemoteBuffer("far", INT, 8); Copy copy(r, w.a); }},
    {"remote_elements", [] { World w; RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 3, 2); Copy copy(w.a, r); }},
    {"remote_rows", [] { World w; RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 8, 4); Copy copy(r, w.a, w.graph.addVariable(UNSIGNED_INT, {2}, "rows")); }},
    {"remote_offset_type", [] { World w; RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 8); Copy copy(r, w.a, w.b[0]); }},
    {"remote_offset_rank", [] { World w; RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 2, 4); Copy copy(w.a, r, w.graph.addVariable(UNSIGNED_INT, {2, 2}, "rows")); }},
    {"remote_twice", [] { World w; w.graph.addRemoteBuffer("far", FLOAT, 8); w.graph.addRemoteBuffer("far", FLOAT, 8); }},
    {"remote_empty", [] { World w; w.graph.addRemoteBuffer("far", FLOAT, 8, 0); }},
    {"remote_unmapped", [] { World w; RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 8); Engine e(w.graph, Copy(r, w.graph.addVariable(FLOAT, {8}, "ghost"))); }},
    {"remote_unmapped_offset", [] { World w; RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 8); Engine e(w.graph, Copy(r, w.a, w.graph.addVariable(UNSIGNED_INT, {1}, "ghost"))); }},
    {"remote_constant", [] { World w; Tensor c = w.graph.addConstant(FLOAT, {8}, 1.f, "one"); w.graph.setTileMapping(c, 0); RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 8); Engine e(w.graph, Copy(r, c)); }},
    {"remote_row", [] { World w; RemoteBuffer r = w.graph.addRemoteBuffer("far", FLOAT, 8, 2); Tensor o = w.graph.addConstant(UNSIGNED_INT, {}, 2u, "o"); w.graph.setTileMapping(o, 0); Engine e(w.graph, Copy(w.a, r, o)); e.loadAndRun(w.device); }},
    {"remote_two_ipus", [] { const Device d = smallDevice(2); Graph g(d.getTarget()); Tensor t = g.addVariable(FLOAT, {8}, VariableMappingMethod::LINEAR, "t"); RemoteBuffer r = g.addRemoteBuffer("far", FLOAT, 8); Engine e(g, Copy(t, r)); }},
    {"remote_other_graph", [] { World w, other; RemoteBuffer r = other.graph.addRemoteBuffer("far", FLOAT, 8); Engine e(w.graph, Copy(w.a, r)); }},
    {"remote_room", [] { IPUModel m("ipu2"); m.tilesPerIPU = 1; m.emulator.streamingBytesPerIpu = 100; Graph g(m.createDevice()); Tensor t = g.addVariable(FLOAT, {8}, "t"); RemoteBuffer x = g.addRemoteBuffer("x", FLOAT, 8, 2), y = g.addRemoteBuffer("y", FLOAT, 8, 2); Engine e(g, Sequence(Copy(t, x), Copy(t, y))); }},
    {"remote_buffer_room", [] { IPUModel m("ipu2"); m.emulator.streamingBytesPerIpu = 100; Graph g(m.createDevice()); g.addRemoteBuffer("x", FLOAT, 26); Engine e(g, Sequence()); }},
    {"remote_handle", [] { World w; Engine e(w.graph, Sequence()); e.load(w.device); float x[8]; e.copyToRemoteBuffer(x, "far", 0); }},
    {"remote_host_row", [] { World w; w.graph.addRemoteBuffer("far", FLOAT, 8, 3); Engine e(w.graph, Sequence()); e.load(w.device); float x[8]; e.copyFromRemoteBuffer("far", x, 3); }},
    {"remote_host_size", [] { World w; w.graph.addRemoteBuffer("far", FLOAT, 8, 3); Engine e(w.graph, Sequence()); e.load(w.device); float x[7]; e.copyToRemoteBuffer(ArrayRef<float>(x, 7), "far", 0); }},
    {"remote_host_size_back", [] { World w; w.graph.addRemoteBuffer("far", FLOAT, 8, 3); Engine e(w.graph, Sequence()); e.load(w.device); float x[9]; e.copyFromRemoteBuffer("far", ArrayRef<float>(x, 9), 0); }},
    {"remote_replica", [] { World w; w.graph.addRemoteBuffer("far", FLOAT, 8); Engine e(w.graph, Sequence()); e.load(w.device); float x[8]; e.copyToRemoteBuffer(x, "far", 0, 1); }},
    {"remote_not_loaded", [] { World w; w.graph.addRemoteBuffer("far", FLOAT, 8); Engine e(w.graph, Sequence()); float x[8]; e.copyToRemoteBuffer(x, "far", 0); }},
    {"abort", [] { World w; Engine e(w.graph, Abort("stop here")); e.loadAndRun(w.device); }},
    {"abort_if", [] { World w; Tensor p = w.graph.addConstant(BOOL, {}, true); w.graph.setTileMapping(p, 0); Engine e(w.graph, AbortOnCondition(p, "it is true")); e.loadAndRun(w.device); }},
    {"recursion", [] { World w; Function f = w.graph.addFunction(Sequence(Call(0))); Engine e(w.graph, Call(f)); }},
    {"unmapped_copy", [] { World w; Engine e(w.graph, Copy(w.graph.addVariable(FLOAT, {8}, "ghost"), w.a)); }},
    {"unmapped_handle", [] { World w; w.graph.createHostRead("h", w.graph.addVariable(FLOAT, {8}, "ghost")); Engine e(w.graph, Sequence()); }},
    {"unmapped_predicate", [] { World w; Engine e(w.graph, If(w.graph.addVariable(INT, {}, "ghost"), Sequence(), Sequence())); }},
    {"incomplete_mapping", [] { World w; w.graph.getTileMapping(w.graph.addVariable(FLOAT, {8}, "ghost")); }},
    {"vertex_tile", [] { World w; w.scale(w.a, 9); }},
    {"handle_twice", [] { World w; w.graph.createHostRead("h", w.a); w.graph.createHostRead("h", w.b); }},
    {"stream_twice", [] { World w; w.graph.addHostToDeviceFIFO("s", FLOAT, 1); w.graph.addHostToDeviceFIFO("s", FLOAT, 1); }},
    {"stream_type", [] { World w; DataStream s = w.graph.addHostToDeviceFIFO("s", INT, 8); Copy copy(s, w.a); }},
    {"reinterpret", [] { World w; w.a.reinterpret(HALF); }},
    {"squeeze", [] { World w; w.a.squeeze({0}); }},
    {"shuffle_twice", [] { World w; w.a.reshape({2, 4}).dimShuffle({1, 1}); }},
    {"shuffle_rank", [] { World w; w.a.dimShuffle({0, 1}); }},
    {"sub_sample", [] { World w; w.a.subSample(0, 0); }},
    {"dimension", [] { World w; w.a.reverse(1); }},
    {"concat_types", [] { World w; concat(w.a, w.graph.addVariable(INT, {8}, "ints")); }},
    {"concat_none", [] { concat(std::vector<Tensor>{}); }},
    {"no_tensor", [] { Tensor().shape(); }},
    {"other_graph", [] { World w, x; w.scale(x.a); }},
    {"tensor_for_value", [] { World w; VertexRef v = w.scale(w.a); w.graph.connect(v["factor"], w.b[0]); }},
    {"value_for_vector", [] { World w; VertexRef v = w.graph.addVertex(w.cs, "Scale"); w.graph.connect(v["data"], 1.f); }},
    {"value_for_output", [] { World w; VertexRef v = w.graph.addVertex(w.cs, "Dot"); w.graph.connect(v["out"], 1.f); }},
    {"row_of_vector", [] { World w; VertexRef v = w.graph.addVertex(w.cs, "Scale"); w.graph.connect(v["data"][0], w.a); }},
    {"list_for_scalar", [] { World w; VertexRef v = w.graph.addVertex(w.cs, "Dot"); w.graph.connect(v["out"], std::vector<Tensor>{w.a[0], w.a[1]}); }},
    {"missing_row", [] { World w; VertexRef v = w.graph.addVertex(w.cs, "SumRows", {{"out", w.out}}); w.graph.connect(v["rows"][1], w.a); w.graph.setTileMapping(v, 0); w.build(); }},
    {"constant_values", [] { World w; w.graph.addConstant<float>(FLOAT, {3}, {1, 2}, "c"); }},
    {"initial_values", [] { World w; w.graph.setInitialValue(w.a, std::vector<float>{1, 2}); }},
    {"field_initial", [] { World w; VertexRef v = w.scale(w.a); w.graph.setInitialValue(v["data"], 1.f); }},
    {"foreign_compute_set", [] { World w; w.graph.addVertex(ComputeSet(7), "Scale"); }},
    {"execute_nothing", [] { World w; Engine e(w.graph, Execute(ComputeSet())); }},
    {"call_nothing", [] { World w; Engine e(w.graph, Call(3)); }},
    {"no_option", [] { OptionFlags().at("absent"); }},
    {"empty_model", [] { IPUModel model("ipu2"); model.numIPUs = 0; model.createDevice(); }},
    {"switch_bounds", [] { World w; Tensor c = w.graph.addConstant(INT, {}, 5); w.graph.setTileMapping(c, 0); Engine e(w.graph, Switch::switchWithBoundsChecking(c, {{1, Sequence()}})); e.loadAndRun(w.device); }},
    {"out_of_memory", [] {
       IPUModel model("ipu2");
       model.tilesPerIPU = 4;
       model.memoryBytesPerTile = 10000;
       Graph graph(model.createDevice().getTarget());
       Tensor big = graph.addVariable(FLOAT, {1500}, "big"), small = graph.addVariable(FLOAT, {100}, "small");
       Tensor middle = graph.addVariable(FLOAT, {500}, "middle"), tiny = graph.addVariable(FLOAT, {10}, "tiny");
       map(graph, {tiny, small, big, middle}, 2);
       for (const auto &[name, tensor] : {std::pair{"big", big}, {"small", small}, {"middle", middle}, {"tiny", tiny}})
         graph.createHostRead(name, tensor);
       Engine engine(graph, Sequence());
     }},
};

} // namespace

int main(int argc, char **argv) { return runScenario(scenarios, argc, argv); }
