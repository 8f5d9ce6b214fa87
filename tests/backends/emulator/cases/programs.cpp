// Control programs, streams, codelets' fields, printing.
#include "case.hpp"

#include <cstring>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <new>

namespace {
std::size_t allocations = 0;
}

void *operator new(std::size_t size) {
  ++allocations;
  if (void *p = std::malloc(size))
    return p;
  throw std::bad_alloc();
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
#else
namespace {
std::size_t allocations = 0;
}
#endif

namespace {

struct World {
  Device device = smallDevice();
  Graph graph{device.getTarget()};
  World() { graph.addCodelets(CODELETS); }
  Tensor variable(Type type, std::vector<std::size_t> shape, const std::string &name, unsigned tile = 0) {
    const Tensor t = graph.addVariable(type, shape, name);
    graph.setTileMapping(t, tile);
    graph.createHostRead(name, t);
    graph.createHostWrite(name, t);
    return t;
  }
  VertexRef vertex(ComputeSet cs, const std::string &type, std::vector<ConnectionDesc> edges, unsigned tile = 0) {
    const VertexRef v = graph.addVertex(cs, type, ArrayRef<ConnectionDesc>(edges));
    graph.setTileMapping(v, tile);
    return v;
  }
  ComputeSet addOne(const Tensor &t, unsigned tile = 0) {
    const ComputeSet cs = graph.addComputeSet("one");
    vertex(cs, "AddOne", {{"data", t}}, tile);
    return cs;
  }
};

std::vector<float> ramp(std::size_t n, float first = 0) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

void vectorAdd() {
  World w;
  const Tensor a = w.variable(FLOAT, {4, 5}, "a"), b = w.variable(FLOAT, {4, 5}, "b", 3), out = w.variable(FLOAT, {4, 5}, "out");
  const ComputeSet cs = w.graph.addComputeSet("add");
  for (unsigned t = 0; t < 4; ++t)
    w.vertex(cs, "Add<float>", {{"a", a[t]}, {"b", b[t]}, {"out", out[t]}}, t);
  Engine e(w.graph, Execute(cs));
  e.load(w.device);
  write(e, "a", ramp(20));
  write(e, "b", ramp(20, 100));
  e.run();
  show(readBack<float>(e, "out", 20));
}

void matvec() {
  World w;
  const Tensor m = w.variable(FLOAT, {6, 4}, "m"), x = w.variable(FLOAT, {4}, "x", 1), y = w.variable(FLOAT, {6}, "y", 2);
  const ComputeSet cs = w.graph.addComputeSet("matvec");
  for (unsigned r = 0; r < 6; ++r)
    w.vertex(cs, "Dot", {{"a", m[r]}, {"b", x}, {"out", y[r]}}, r % 4);
  Engine e(w.graph, Execute(cs));
  e.load(w.device);
  write(e, "m", ramp(24));
  write(e, "x", ramp(4, 1));
  e.run();
  show(readBack<float>(e, "y", 6));
}

void halves() {
  World w;
  const Tensor a = w.variable(HALF, {3}, "a"), out = w.variable(HALF, {3}, "out");
  const ComputeSet cs = w.graph.addComputeSet("add");
  w.vertex(cs, "Add< half >", {{"a", a}, {"b", a}, {"out", out}});
  Engine e(w.graph, Execute(cs));
  e.load(w.device);
  const float values[] = {0.1f, 2048.f, -3.f};
  float back[3];
  std::vector<std::uint16_t> device(3);
  copyFloatToDeviceHalf(w.device.getTarget(), values, device.data(), 3);
  write(e, "a", device);
  e.run();
  device = readBack<std::uint16_t>(e, "out", 3);
  copyDeviceHalfToFloat(w.device.getTarget(), device.data(), back, 3);
  show(std::vector<float>(back, back + 3));
}

void control() {
  World w;
  const Tensor t = w.variable(INT, {1}, "t"), counter = w.variable(INT, {}, "counter", 1), below = w.variable(BOOL, {}, "below", 2);
  const Tensor choice = w.variable(INT, {}, "choice");
  const Execute one(w.addOne(t));
  const ComputeSet count = w.graph.addComputeSet("count");
  const VertexRef v = w.vertex(count, "Count", {{"counter", counter}, {"below", below}}, 3);
  w.graph.setInitialValue(v["limit"], 5);
  const Function f = w.graph.addFunction(Repeat(2, one));
  Switch cases(choice, {{1, one}, {7, Sequence(one, one, one)}}, Repeat(100, one));
  Sequence original(one);
  const Sequence copied = original;
  original.add(one);
  Engine e(w.graph, std::vector<Program>{Repeat(3, Repeat(4, one)), RepeatWhileTrue(Execute(count), below, one),
                                         If(choice, one, Repeat(10, one)), cases, Sequence{Call(f), Call(f)}, copied,
                                         RepeatWhileFalse(Sequence(), below, Execute(count)), Sequence(), Block(one)});
  for (const std::vector<int> &run : std::vector<std::vector<int>>{{0}, {1}, {2, 0}, {2, -1}, {3, 1}, {3, 7}, {3, 2}, {4}, {5}, {6}, {7}, {8}}) {
    e.load(w.device);
    write(e, "t", std::vector<int>{0});
    write(e, "counter", std::vector<int>{0});
    write(e, "below", std::vector<char>{0});
    write(e, "choice", std::vector<int>{run.size() > 1 ? run[1] : 0});
    e.run(unsigned(run[0]));
    std::cout << readBack<int>(e, "t", 1)[0] << "/" << readBack<int>(e, "counter", 1)[0] << " ";
  }
  std::cout << "\n";
}

void streams() {
  World w;
  const Tensor t = w.variable(INT, {2}, "t"), sum = w.variable(INT, {2}, "sum", 1);
  const DataStream in = w.graph.addHostToDeviceFIFO("in", INT, 2), out = w.graph.addDeviceToHostFIFO("out", INT, 2);
  const DataStream called = w.graph.addHostToDeviceFIFO("called", INT, 2);
  const ComputeSet cs = w.graph.addComputeSet("add");
  w.vertex(cs, "Add<int>", {{"a", t}, {"b", sum}, {"out", sum}}, 1);
  Engine e(w.graph, {Repeat(5, Sequence(Copy(in, t), Execute(cs), Copy(sum.reverse(0), out))), Sequence(Copy(called, t), Copy(t, out))});
  std::vector<int> source = {1, 10, 2, 20, 3, 30}, sink(10), fixed(2);
  e.connectStream(in, source.data(), source.data() + 6);
  e.connectStream("out", sink.data(), sink.data() + 10);
  e.load(w.device);
  e.run();
  show(sink);
  int calls = 0;
  e.connectStreamToCallback("called", [&](void *p) {
    static_cast<int *>(p)[0] = ++calls;
    static_cast<int *>(p)[1] = -calls;
  });
  e.connectStream("out", fixed.data());
  e.run(1);
  e.run(1);
  show(fixed);
}

/// Rows of a remote buffer come to a strided view one after the other, and go back a row further; then two rows at once, by a list.
void remotes() {
  World w;
  const Tensor t = w.variable(INT, {4, 3}, "t"), at = w.variable(UNSIGNED_INT, {1}, "at", 1), next = w.variable(UNSIGNED_INT, {1}, "next", 1);
  const Tensor column = t.slice(1, 2, 1).flatten();
  const Tensor both = w.variable(INT, {2, 4}, "both", 2), list = w.graph.addConstant<unsigned>(UNSIGNED_INT, {2}, {2, 0}, "list");
  w.graph.setTileMapping(list, 3);
  const RemoteBuffer far = w.graph.addRemoteBuffer("far", INT, 4, 4);
  const ComputeSet cs = w.graph.addComputeSet("turn");
  const Tensor one = w.graph.addConstant(UNSIGNED_INT, {1}, 1u, "one");
  w.graph.setTileMapping(one, 1);
  w.vertex(cs, "Add<unsigned int>", {{"a", at}, {"b", one}, {"out", next}}, 1);
  Engine e(w.graph, {Repeat(3, Sequence(Copy(far, column, at), Execute(cs), Copy(column.reverse(0), far, next), Copy(next, at))),
                     Sequence(Copy(far, both, list), Copy(both[0], far)), Copy(far, column)});
  e.load(w.device);
  write(e, "at", std::vector<unsigned>{0});
  const std::vector<int> first = {1, 2, 3, 4};
  e.copyToRemoteBuffer(first.data(), "far", 0);
  e.run();
  show(readBack<int>(e, "t", 12));
  std::vector<int> row(4);
  e.copyFromRemoteBuffer("far", row.data(), 1);
  show(row);
  e.copyToRemoteBuffer(ArrayRef<int>(std::vector<int>{9, 8, 7, 6}), "far", 2, 0);
  e.run(1);
  show(readBack<int>(e, "both", 8));
  e.run(2);
  show(readBack<int>(e, "t", 12));
}

void fields() {
  World w;
  const Tensor rows = w.variable(FLOAT, {3, 4}, "rows"), sums = w.variable(FLOAT, {3}, "sums"), list = w.variable(FLOAT, {2}, "list");
  const Tensor n = w.variable(INT, {}, "n"), ints = w.variable(INT, {4}, "ints", 2), picked = w.variable(INT, {}, "picked");
  const ComputeSet cs = w.graph.addComputeSet("fields");
  w.vertex(cs, "SumRows", {{"rows", rows}, {"out", sums}}, 1);
  const VertexRef v = w.graph.addVertex(cs, "SumList", {{"out", list}});
  w.graph.connect(v["rows"][0], rows[0].slice(0, 1));
  w.graph.connect(v["rows"][1], rows.slice(2, 4, 1).flatten());
  w.graph.setFieldSize(v["rows"], 2);
  w.graph.setInitialValue(v["offsets"], std::vector<float>{0.5f, 0.25f});
  w.graph.setTileMapping(v, 2);
  w.vertex(cs, "Remember", {{"out", n}}, 3);
  w.vertex(cs, "inner::Pick<int, inner::Mode::LAST, true>", {{"in", ints}, {"out", picked}});
  Engine e(w.graph, Repeat(3, Execute(cs)));
  e.load(w.device);
  write(e, "rows", ramp(12));
  write(e, "ints", std::vector<int>{4, 5, 6, 9});
  e.run();
  e.run();
  show(readBack<float>(e, "sums", 3));
  show(readBack<float>(e, "list", 2));
  show(readBack<int>(e, "n", 1));
  show(readBack<int>(e, "picked", 1));
  e.load(w.device);
  e.run();
  show(readBack<int>(e, "n", 1));
}

void values() {
  World w;
  const Tensor t = w.variable(FLOAT, {2, 2}, "t"), out = w.variable(FLOAT, {2}, "out");
  w.graph.setInitialValue(t.transpose(), std::vector<float>{1, 2, 3, 4});
  const Tensor c = w.graph.addConstant<float>(FLOAT, {2}, {10, 20}, "c");
  w.graph.setTileMapping(c, 3);
  const ComputeSet cs = w.graph.addComputeSet("add");
  w.vertex(cs, "Add<float>", {{"a", t[0]}, {"b", c}, {"out", out}});
  const Tensor copy = w.graph.clone(t, "copy");
  w.graph.createHostRead("copy", copy);
  Engine e(w.graph, Sequence(Execute(cs), Copy(t, copy), Copy(t[0], t[1]), Copy(concat(t[0].slice(1, 2), t[0].slice(0, 1)), t[0])));
  e.loadAndRun(w.device);
  show(readBack<float>(e, "t", 4));
  show(readBack<float>(e, "out", 2));
  show(readBack<float>(e, "copy", 4));
}

void printing() {
  World w;
  const Tensor v2 = w.variable(FLOAT, {4}, "v2"), matrix = w.variable(INT, {2, 3}, "m"), big = w.variable(INT, {2000}, "big");
  const Tensor one = w.variable(BOOL, {}, "one"), wide = w.variable(INT, {30}, "wide");
  w.graph.setInitialValue<float>(v2, {7, 6, 4.5, 2.5});
  w.graph.setInitialValue(matrix, std::vector<int>{10, 11, 12, 20, 21, 22});
  w.graph.setInitialValue(one, true);
  Engine e(w.graph, Sequence(PrintTensor(v2), PrintTensor("v4-1", matrix[0]), PrintTensor("m", matrix), PrintTensor("big", big),
                             PrintTensor("one", one), PrintTensor("wide", wide)));
  e.setPrintTensorStream(std::cout);
  e.loadAndRun(w.device);
}

/// Many vertices over strided edges, repeated; prints every element and the cycles.
void threads() {
  const Device device = smallDevice(1, 64);
  Graph graph(device.getTarget());
  graph.addCodelets(CODELETS);
  const Tensor t = graph.addVariable(FLOAT, {16, 512}, "t"), m = graph.addVariable(INT, {512, 8}, "m");
  graph.createHostRead("t", t);
  graph.createHostWrite("t", t);
  const ComputeSet cs = graph.addComputeSet("scale");
  for (unsigned i = 0; i < 512; ++i) {
    const Tensor column = t.slice(i, i + 1, 1).flatten();
    graph.setTileMapping(column, (i * 7) % 64);
    graph.setTileMapping(m[i], i % 64);
    const VertexRef v = graph.addVertex(cs, "Scale", {{"data", column}});
    graph.setInitialValue(v["factor"], 1.f + float(i) / 512);
    graph.setTileMapping(v, i % 64);
    const VertexRef c = graph.addVertex(cs, "Counted", {{"data", m[i]}});
    graph.setInitialValue(c["cycles"], 1 + i * i % 97);
    graph.setTileMapping(c, i % 64);
  }
  Engine e(graph, Repeat(20, Execute(cs)));
  e.load(device);
  write(e, "t", ramp(16 * 512, 1));
  e.run();
  e.run();
  show(readBack<float>(e, "t", 16 * 512));
  const EmulatorProfile p = e.getEmulatorProfile();
  std::cout << p.cycles << " " << p.steps[0].computeCyclesSum << "\n";
  show(p.computeCycles);
}

void summary() {
  World w;
  const Tensor t = w.variable(INT, {4}, "t");
  Engine e(w.graph, Execute(w.addOne(t, 1)));
  e.loadAndRun(w.device);
  e.printProfileSummary(std::cout, {{"showExecutionSteps", "true"}});
  e.resetExecutionProfile();
  std::cout << e.getEmulatorProfile().cycles << "\n";
}

/// A MultiVertex whose workers need each other.
void workers() {
  World w;
  const Tensor t = w.variable(INT, {6}, "t");
  const ComputeSet cs = w.graph.addComputeSet("sum");
  w.vertex(cs, "RunningSum", {{"data", t}});
  Engine e(w.graph, Execute(cs));
  e.loadAndRun(w.device);
  show(readBack<int>(e, "t", 6));
}

void machines() {
  for (const char *version : {"ipu1", "ipu2", "ipu21"}) {
    const Target t = IPUModel(version).createDevice().getTarget();
    std::cout << t.getNumTiles() << " " << t.getBytesPerTile() << " " << t.getTileClockFrequency() / 1e6 << " " << t.getNumWorkerContexts() << "\n";
  }
  const DeviceManager manager = DeviceManager::createDeviceManager();
  std::cout << manager.getDevices(TargetType::IPU, 1).size() << " " << manager.getDevices(TargetType::IPU_MODEL, 4)[0].getTarget().getNumTiles() << "\n";
  Graph graph(Device::createCPUDevice());
  graph.addCodelets(CODELETS);
  const Tensor t = graph.addVariable(INT, {2}, "t");
  graph.createHostRead("t", t);
  const ComputeSet cs = graph.addComputeSet("one");
  graph.addVertex(cs, "AddOne", {{"data", t}});
  Engine e(graph, Execute(cs));
  e.loadAndRun(Device::createCPUDevice());
  show(readBack<int>(e, "t", 2));
}

void rows() {
  World w;
  const Tensor in = w.variable(FLOAT, {3, 4}, "in"), out = w.variable(FLOAT, {3, 2}, "out");
  const ComputeSet cs = w.graph.addComputeSet("rows");
  w.vertex(cs, "CopyRows", {{"in", in.slice(1, 3, 1)}, {"out", out}});
  Engine e(w.graph, Execute(cs));
  e.load(w.device);
  write(e, "in", ramp(12));
  e.run();
  show(readBack<float>(e, "out", 6));
}

/// How often memory is taken while a program of all kinds of steps runs, the first time aside.
void countAllocations() {
  World w;
  const Tensor m = w.variable(INT, {16, 6}, "m", 1), flag = w.variable(INT, {}, "flag"), x = w.variable(FLOAT, {4}, "x", 2);
  const Tensor row = w.variable(UNSIGNED_INT, {1}, "row"), y = w.variable(FLOAT, {4}, "y", 3);
  const ComputeSet staged = w.graph.addComputeSet("columns"), uneven = w.graph.addComputeSet("uneven"), multi = w.graph.addComputeSet("multi");
  for (unsigned i = 0; i < 6; ++i)
    w.vertex(staged, "AddOne", {{"data", m.slice(i, i + 1, 1).flatten()}}, i % 4);
  for (unsigned i = 0; i < 16; ++i)
    w.vertex(uneven, "Counted", {{"data", m[i]}, {"cycles", 10 + i}}, 1);
  w.vertex(multi, "CountedMulti", {{"data", m.flatten()}}, 2);
  const DataStream in = w.graph.addHostToDeviceFIFO("in", FLOAT, 4), out = w.graph.addDeviceToHostFIFO("out", FLOAT, 4);
  const RemoteBuffer far = w.graph.addRemoteBuffer("far", FLOAT, 4, 2);
  const Sequence body{Execute(staged), Execute(uneven), Execute(multi), Execute(w.addOne(m[3])), Copy(in, x), Copy(x, y), Copy(y.slice(0, 2), y.slice(2, 4)),
                      Copy(y, far, row), Copy(far, x, row), Copy(x, out), If(flag, Sync(SyncType::INTERNAL), WriteUndef(y))};
  Switch choice(flag, {{1, body}});
  choice.add(0, Repeat(3, body));
  Engine e(w.graph, {RepeatWhileTrue(choice, flag, Sequence())});
  float from[8] = {}, to[4];
  e.connectStream("in", from, from + 8);
  e.connectStreamToCallback("out", [&](void *data) { std::memcpy(to, data, sizeof to); });
  e.loadAndRun(w.device);
  const std::size_t before = allocations;
  e.run();
  std::cout << allocations - before << " " << (before > 0) << "\n";
}

} // namespace

int main(int argc, char **argv) {
  return runScenario({{"vectorAdd", vectorAdd}, {"matvec", matvec}, {"halves", halves}, {"control", control}, {"streams", streams}, {"remotes", remotes},
                      {"fields", fields}, {"values", values}, {"printing", printing}, {"threads", threads}, {"summary", summary},
                      {"machines", machines}, {"workers", workers}, {"rows", rows}, {"allocations", countAllocations}},
                     argc, argv);
}
