// Programs whose memory, bytes and cycles can be worked out by hand; prints the profile as JSON.
#include "case.hpp"

namespace {

int number(char **argv, int i) { return std::atoi(argv[i]); }

void runAndShow(Graph &graph, const Device &device, const Program &program, unsigned runs = 1) {
  Engine engine(graph, program);
  engine.load(device);
  for (unsigned i = 0; i < runs; ++i)
    engine.run();
  std::cout << engine.getEmulatorProfile().toJson() << "\n";
}

/// 16 ints on tile 0 are read in full by a vertex on each of the given tiles; out and data of each are on tile `home`.
void broadcast(int argc, char **argv) {
  const Device device = smallDevice(unsigned(number(argv, 2)));
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const Tensor in = graph.addVariable(INT, {16}, "in");
  graph.setTileMapping(in, 0);
  const ComputeSet cs = graph.addComputeSet("spread");
  for (int i = 3; i < argc; ++i) {
    const unsigned tile = unsigned(number(argv, i));
    const Tensor out = graph.addVariable(INT, {16}, "out");
    graph.setTileMapping(out, tile);
    // Two vertices a tile: what reaches a tile twice is sent once.
    for (const Interval part : {Interval(0, 8), Interval(8, 16)}) {
      const VertexRef v = graph.addVertex(cs, "CopyIn", {{"in", in}, {"out", out.slice(part)}});
      graph.setTileMapping(v, tile);
      graph.setPerfEstimate(v, 10);
    }
  }
  runAndShow(graph, device, Execute(cs));
}

/// A vertex on tile 1 updates two rows of 4 ints of a matrix, columns 2 to 6, that lies on tile 0.
void remote() {
  const Device device = smallDevice();
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const Tensor matrix = graph.addVariable(INT, {2, 8}, "matrix");
  graph.setTileMapping(matrix, 0);
  const ComputeSet cs = graph.addComputeSet("update");
  const VertexRef v = graph.addVertex(cs, "AddOne", {{"data", matrix.slice(2, 6, 1).flatten()}});
  graph.setTileMapping(v, 1);
  graph.setPerfEstimate(v, 7);
  runAndShow(graph, device, Repeat(3, Execute(cs)));
}

/// IPUs of one tile, wires "from-to:bytes a second" as long as they have a colon behind a dash, then transfers "from>to+to:ints", all at once.
void links(int argc, char **argv) {
  IPUModel model("ipu2");
  model.numIPUs = unsigned(number(argv, 2));
  model.tilesPerIPU = 1;
  int next = 3;
  for (; next < argc && std::string(argv[next]).find('-') != std::string::npos; ++next) {
    EmulatorWire wire{};
    std::sscanf(argv[next], "%u-%u:%lf", &wire.from, &wire.to, &wire.bytesPerSecond);
    model.emulator.wires.push_back(wire);
  }
  const Device device = model.createDevice();
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const ComputeSet cs = graph.addComputeSet("send");
  for (; next < argc; ++next) {
    const std::string text = argv[next];
    const std::size_t arrow = text.find('>'), colon = text.find(':');
    const Tensor in = graph.addVariable(INT, {std::size_t(std::stoul(text.substr(colon + 1)))}, "in");
    graph.setTileMapping(in, unsigned(std::stoul(text)));
    std::istringstream receivers(text.substr(arrow + 1, colon - arrow - 1));
    for (std::string to; std::getline(receivers, to, '+');) {
      const unsigned tile = unsigned(std::stoul(to));
      const Tensor out = graph.clone(in);
      graph.setTileMapping(out, tile);
      graph.setTileMapping(graph.addVertex(cs, "CopyIn", {{"in", in}, {"out", out}}), tile);
    }
  }
  runAndShow(graph, device, Execute(cs));
}

/// V vertices of `cycles` worker cycles on tile 2.
void equal(char **argv) {
  const Device device = smallDevice();
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const ComputeSet cs = graph.addComputeSet("equal");
  for (int i = 0; i < number(argv, 2); ++i) {
    const Tensor t = graph.addVariable(INT, {1}, "t");
    graph.setTileMapping(t, 2);
    const VertexRef v = graph.addVertex(cs, "AddOne", {{"data", t}});
    graph.setTileMapping(v, 2);
    graph.setPerfEstimate(v, std::uint64_t(number(argv, 3)));
  }
  runAndShow(graph, device, Execute(cs));
}

/// Vertices on tile 1 that count the given cycles.
void counted(int argc, char **argv) {
  const Device device = smallDevice();
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const ComputeSet cs = graph.addComputeSet("counted");
  for (int i = 2; i < argc; ++i) {
    const Tensor t = graph.addVariable(INT, {1}, "t");
    graph.setTileMapping(t, 1);
    const VertexRef v = graph.addVertex(cs, "Counted", {{"data", t}});
    graph.setInitialValue(v["cycles"], number(argv, i));
    graph.setTileMapping(v, 1);
  }
  runAndShow(graph, device, Execute(cs), 2);
}

/// One MultiVertex over n ints, 10 cycles each.
void multi(char **argv) {
  const Device device = smallDevice();
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const Tensor t = graph.addVariable(INT, {std::size_t(number(argv, 2))}, "t");
  graph.setTileMapping(t, 1);
  const ComputeSet cs = graph.addComputeSet("multi");
  graph.setTileMapping(graph.addVertex(cs, "CountedMulti", {{"data", t}}), 1);
  runAndShow(graph, device, Execute(cs));
}

/// A vertex that neither counts nor has an estimate, over 20 ints.
void guessed() {
  const Device device = smallDevice();
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const Tensor t = graph.addVariable(INT, {20}, "t");
  graph.setTileMapping(t, 0);
  const ComputeSet cs = graph.addComputeSet("guessed");
  graph.setTileMapping(graph.addVertex(cs, "AddOne", {{"data", t}}), 0);
  runAndShow(graph, device, Execute(cs));
}

/// A copy of 64 floats from tile 0 to tile 1 (first half) and within tile 0 (second half).
void copy() {
  const Device device = smallDevice();
  Graph graph(device.getTarget());
  const Tensor a = graph.addVariable(FLOAT, {64}, "a"), b = graph.addVariable(FLOAT, {64}, "b");
  graph.setTileMapping(a, 0);
  graph.setTileMapping(b.slice(0, 32), 1);
  graph.setTileMapping(b.slice(32, 64), 0);
  runAndShow(graph, device, Repeat(2, Copy(a, b)));
}

/// Memory of every category on tile 0 and 1.
void memory() {
  const Device device = smallDevice();
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const Tensor a = graph.addVariable(FLOAT, {100}, "a"), b = graph.addConstant(FLOAT, {10}, 1.f, "b"), out = graph.addVariable(FLOAT, {}, "out");
  map(graph, {a, b}, 0);
  map(graph, {out}, 1);
  const ComputeSet cs = graph.addComputeSet("dot");
  const VertexRef v = graph.addVertex(cs, "Dot", {{"a", a.slice(0, 10)}, {"b", b}, {"out", out}});
  graph.setTileMapping(v, 1);
  runAndShow(graph, device, Execute(cs));
}

/// So many ints on each of some tiles go to a row of a remote buffer of each IPU and come back, twice; options: ints, IPUs, tiles.
void streaming(char **argv) {
  const std::size_t ints = std::size_t(number(argv, 2));
  const unsigned ipus = unsigned(number(argv, 3)), tiles = unsigned(number(argv, 4));
  const Device device = smallDevice(ipus);
  Graph graph(device.getTarget());
  Sequence program;
  const Tensor row = graph.addConstant(UNSIGNED_INT, {}, 2u, "row");
  graph.setTileMapping(row, 0);
  for (unsigned ipu = 0; ipu < ipus; ++ipu) {
    const Tensor t = graph.addVariable(INT, {2, tiles, ints / 2}, "t");
    for (unsigned tile = 0; tile < tiles; ++tile)
      graph.setTileMapping(t.slice(tile, tile + 1, 1), 4 * ipu + tile);
    const RemoteBuffer far = graph.addRemoteBuffer("far" + std::to_string(ipu), INT, t.numElements(), 3);
    program.add(Sequence(Copy(t, far, row), Copy(far, t, row)));
  }
  runAndShow(graph, device, Repeat(2, program));
}

/// So many ints are streamed to tile 3, which holds no vertex; then tile 0 computes so many worker cycles, twice, and `what` stands between.
void beside(char **argv) {
  const std::size_t ints = std::size_t(number(argv, 2));
  const std::string what = argv[4];
  const Device device = smallDevice(2);
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const auto on = [&](const char *name, unsigned tile, std::size_t size) {
    const Tensor made = graph.addVariable(INT, {size}, name);
    graph.setTileMapping(made, tile);
    return made;
  };
  const Tensor set = on("set", 3, ints), own = on("own", 0, 1), near = on("near", 1, 1), far = on("far", 4, 1), all = on("all", 1, ints);
  const ComputeSet cs = graph.addComputeSet("work");
  const VertexRef v = graph.addVertex(cs, "AddOne", {{"data", own}});
  graph.setTileMapping(v, what == "vertex" ? 3 : 0);
  graph.setPerfEstimate(v, std::uint64_t(number(argv, 3)));
  graph.setInitialValue(own, 0);
  const DataStream stream = graph.addHostToDeviceFIFO("in", INT, ints), blocking = graph.addHostToDeviceFIFO("other", INT, 1);
  const std::map<std::string, Program> between{{"copy near", Copy(own, near)},   {"copy far", Copy(own, far)},    {"copy of it", Copy(set, all)},
                                               {"decision", If(own.reshape({}), Sequence(), Sequence())}, {"stream", Copy(blocking, own)},
                                               {"second", Copy(stream, set)},    {"barrier", Sync(SyncType::EXTERNAL)}};
  Sequence program{Copy(stream, set), Execute(cs)};
  if (between.count(what))
    program.add(between.at(what));
  program.add(Execute(cs));
  Engine engine(graph, program);
  std::vector<int> given(ints, 1);
  engine.connectStream("in", given.data(), given.data() + ints);
  engine.connectStream("other", given.data(), given.data() + 1);
  engine.load(device);
  for (int run = 0; run < 2; ++run)
    engine.run();
  std::cout << engine.getEmulatorProfile().toJson() << "\n";
}

} // namespace

int main(int argc, char **argv) {
  return runScenario({{"broadcast", [&] { broadcast(argc, argv); }},
                      {"remote", remote},
                      {"links", [&] { links(argc, argv); }},
                      {"equal", [&] { equal(argv); }},
                      {"counted", [&] { counted(argc, argv); }},
                      {"multi", [&] { multi(argv); }},
                      {"guessed", guessed},
                      {"copy", copy},
                      {"streaming", [&] { streaming(argv); }},
                      {"beside", [&] { beside(argv); }},
                      {"memory", memory}},
                     argc, argv);
}
