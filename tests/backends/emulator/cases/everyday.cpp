// Programs in the forms in which people write them: helper lambdas, loops over time, devices by name, engines with options.
#include "case.hpp"

#include <poplar/CycleCount.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/RandomSeed.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/Fill.hpp>
#include <popops/Loop.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Zero.hpp>
#include <popops/codelets.hpp>
#include <poputil/TileMapping.hpp>

#include <pva/pva.hpp>

#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

namespace pe = popops::expr;

namespace {

/// What most programs begin with: hardware where there is some, else a model.
std::optional<Device> attach(unsigned ipus) {
  auto manager = DeviceManager::createDeviceManager();
  auto devices = manager.getDevices(TargetType::IPU, ipus);
  const auto found = std::find_if(devices.begin(), devices.end(), [](Device &d) { return d.attach(); });
  if (found == devices.end())
    return std::nullopt;
  return std::optional<Device>(std::move(*found));
}

auto mapped(Graph &graph, Type type, std::vector<std::size_t> shape, const std::string &name) -> Tensor {
  auto t = graph.addVariable(type, shape, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// Leaky integrate-and-fire neurons over time, their loss and its gradient, with PopLibs alone.
struct LifNetwork {
  const std::size_t steps, batch, inputs, hidden;
  const float decay = 0.9f, threshold = 1.f, slope = 5.f, rate = 0.1f;
  Graph &graph;
  Tensor x, w, voltages, spikes, target, dw, loss;

  LifNetwork(Graph &g, std::size_t t, std::size_t b, std::size_t i, std::size_t h)
      : steps(t), batch(b), inputs(i), hidden(h), graph(g), x(mapped(g, FLOAT, {t, b, i}, "x")), w(mapped(g, FLOAT, {i, h}, "w")),
        voltages(mapped(g, FLOAT, {t, b, h}, "voltages")), spikes(mapped(g, FLOAT, {t, b, h}, "spikes")), target(mapped(g, FLOAT, {b, h}, "target")),
        dw(mapped(g, FLOAT, {i, h}, "dw")), loss(mapped(g, FLOAT, {}, "loss")) {}

  Sequence forward() {
    Sequence prog;
    auto v = mapped(graph, FLOAT, {batch, hidden}, "v"), s = mapped(graph, FLOAT, {batch, hidden}, "s");
    popops::zero(graph, v, prog, "v0");
    popops::zero(graph, s, prog, "s0");
    prog.add(popops::countedLoop(
        graph, 0, steps, 1,
        [&](const Tensor &t) {
          Sequence body;
          auto now = popops::dynamicSlice(graph, x, t, {0}, {1}, body, "x[t]").squeeze({0});
          auto current = poplin::matMul(graph, now, w, body, "current", {{"availableMemoryProportion", "0.4"}, {"partialsType", "float"}});
          // v = decay * v * (1 - s) + current
          popops::mapInPlace(graph, pe::Add(pe::Mul(pe::Mul(pe::Const(decay), pe::_1), pe::Sub(pe::Const(1.f), pe::_2)), pe::_3), {v, s, current}, body, "v");
          body.add(Copy(popops::cast(graph, popops::gt(graph, v, threshold, body), FLOAT, body), s));
          popops::dynamicUpdate(graph, voltages, v.expand({0}), t, {0}, {1}, body);
          popops::dynamicUpdate(graph, spikes, s.expand({0}), t, {0}, {1}, body);
          return body;
        },
        "time"));
    return prog;
  }

  /// Of half the squared distance of spike counts to the target; the reset passes no gradient.
  Sequence backward() {
    Sequence prog;
    auto difference = popops::sub(graph, popops::reduce(graph, spikes, {0}, popops::Operation::ADD, prog, "counts"), target, prog);
    popops::reduceWithOutput(graph, difference, loss, {0, 1}, popops::Operation::SQUARE_ADD, prog, "loss");
    popops::mulInPlace(graph, loss, 0.5f, prog);
    auto dv = mapped(graph, FLOAT, {batch, hidden}, "dv");
    popops::zero(graph, dv, prog);
    popops::zero(graph, dw, prog);
    auto t = graph.addVariable(UNSIGNED_INT, {1}, "t");
    graph.setTileMapping(t, 0);
    popops::fill(graph, t, prog, unsigned(steps));
    Sequence body;
    popops::subInPlace(graph, t, 1u, body);
    auto v = popops::dynamicSlice(graph, voltages, t, {0}, {1}, body).squeeze({0}), s = popops::dynamicSlice(graph, spikes, t, {0}, {1}, body).squeeze({0});
    auto now = popops::dynamicSlice(graph, x, t, {0}, {1}, body).squeeze({0});
    // dv = decay * (1 - s) * dv + surrogate(v) * difference
    const auto surrogate = pe::Inv(pe::Square(1.f + slope * pe::Abs(pe::_2 - threshold)));
    popops::mapInPlace(graph, decay * (1.f - pe::_3) * pe::_1 + surrogate * pe::_4, {dv, v, s, difference}, body, "dv");
    poplin::matMulAcc(graph, dw, 1.f, now.transpose(), dv, body, "dw");
    prog.add(Repeat(unsigned(steps), body));
    return prog;
  }

  Sequence update() {
    Sequence prog;
    popops::scaledAddTo(graph, w, dw, -rate, prog, "update");
    return prog;
  }
};

void lif() {
  const Device device = smallDevice(1, 24);
  Graph graph(device);
  popops::addCodelets(graph);
  poplin::addCodelets(graph);
  LifNetwork net(graph, 12, 3, 7, 5);
  graph.createHostWrite("x", net.x);
  for (const auto &[name, t] : std::map<std::string, Tensor>{{"w", net.w}, {"target", net.target}})
    graph.createHostWrite(name, t);
  for (const auto &[name, t] : std::map<std::string, Tensor>{{"w", net.w}, {"dw", net.dw}, {"loss", net.loss}, {"spikes", net.spikes}})
    graph.createHostRead(name, t);
  enum { FORWARD, BACKWARD, TRAIN };
  Engine engine(graph, {net.forward(), net.backward(), Sequence{net.forward(), net.backward(), net.update()}}, {{"debug.instrument", "true"}});
  engine.load(device);
  const auto wave = [](std::size_t n, float scale, int seed) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i)
      values[i] = scale * float(int((i * 37 + unsigned(seed) * 17 + 11) % 101) - 30) / 64;
    return values;
  };
  engine.writeTensor("x", wave(12 * 3 * 7, 1, 0));
  engine.writeTensor("w", wave(7 * 5, 0.5f, 1));
  engine.writeTensor("target", wave(3 * 5, 8, 2));
  engine.run(FORWARD);
  engine.run(BACKWARD);
  show(readBack<float>(engine, "spikes", 12 * 3 * 5));
  show(readBack<float>(engine, "dw", 7 * 5));
  show(readBack<float>(engine, "loss", 1));
  engine.run(TRAIN);
  show(readBack<float>(engine, "w", 7 * 5));
}

/// Two IPUs as a pipeline: each multiplies, what lies between is copied.
void pipeline() {
  auto device = attach(2);
  if (!device)
    return;
  Graph graph(device->getTarget(), replication_factor(1));
  popops::addCodelets(graph);
  const unsigned perIpu = graph.getTarget().getTilesPerIPU();
  std::vector<Graph> shards;
  for (unsigned ipu = 0; ipu < 2; ++ipu)
    shards.push_back(graph.createVirtualGraph(ipu * perIpu, (ipu + 1) * perIpu));
  Sequence prog;
  Tensor data = shards[0].addVariable(FLOAT, {64}, "data");
  poputil::mapTensorLinearly(shards[0], data);
  auto in = graph.addHostToDeviceFIFO("in", FLOAT, 64);
  auto out = graph.addDeviceToHostFIFO("out", FLOAT, 64);
  prog.add(Copy(in, data));
  for (unsigned ipu = 0; ipu < 2; ++ipu) {
    if (ipu > 0)
      data = poputil::copyToIpu(graph, data, prog, ipu, "between");
    data = popops::mul(shards[ipu], data, float(ipu + 2), prog, "stage" + std::to_string(ipu));
  }
  prog.add(Copy(data, out));
  Engine engine(graph, Repeat(3, prog));
  std::vector<float> host(192);
  std::iota(host.begin(), host.end(), 0.f);
  std::vector<float> result(192);
  engine.connectStream("in", host.data(), host.data() + host.size());
  engine.connectStream("out", result.data(), result.data() + result.size());
  engine.load(*device);
  engine.run();
  show(result);
  const auto mapping = graph.getTileMapping(data);
  std::cout << std::all_of(mapping.begin(), mapping.begin() + perIpu, [](const auto &m) { return m.empty(); }) << "\n";
}

/// Rows of a remote buffer are worked on by replicas, each on its own.
void replicas() {
  const Device device = smallDevice(4);
  Graph graph(device, replication_factor(2));
  popops::addCodelets(graph);
  auto rows = graph.addRemoteBuffer("rows", INT, 4, 3);
  auto t = mapped(graph, INT, {4}, "t");
  auto row = graph.addVariable(UNSIGNED_INT, {1}, "row");
  graph.setTileMapping(row, 0);
  auto own = graph.addReplicationIndexConstant();
  graph.setTileMapping(own, 0);
  Sequence prog;
  popops::zero(graph, row, prog);
  Sequence body{Copy(rows, t, row)};
  popops::mapInPlace(graph, pe::_1 * 10 + pe::Cast(pe::_2, INT), {t, own}, body);
  body.add(Copy(t, rows, row));
  popops::addInPlace(graph, row, 1u, body);
  prog.add(Repeat(3, body));
  Engine engine(graph, prog);
  engine.load(device);
  for (unsigned replica = 0; replica < 2; ++replica)
    for (unsigned r = 0; r < 3; ++r) {
      const std::vector<int> values(4, int(replica * 3 + r));
      engine.copyToRemoteBuffer(values.data(), "rows", r, replica);
    }
  engine.run();
  for (unsigned replica = 0; replica < 2; ++replica)
    for (unsigned r = 0; r < 3; ++r) {
      std::vector<int> values(4);
      engine.copyFromRemoteBuffer("rows", gccs::ArrayRef<int>(values), r, replica);
      show(values);
    }
}

/// How many steps a number takes to reach 1 by halving, or three times itself and one.
void collatz(int start) {
  const Device device = Device::createCPUDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  auto n = graph.addVariable(INT, {}, VariableMappingMethod::LINEAR, "n"), count = graph.addVariable(INT, {}, VariableMappingMethod::LINEAR, "count");
  graph.setInitialValue(n, start);
  graph.setInitialValue(count, 0);
  graph.createHostRead("count", count);
  Sequence condition, body, half, odd;
  auto goesOn = popops::gt(graph, n, 1, condition);
  auto rest = popops::rem(graph, n, 2, body);
  popops::divInPlace(graph, n, 2, half);
  popops::mapInPlace(graph, 3 * pe::_1 + 1, {n}, odd);
  body.add(Switch(rest, {{0, half}}, odd));
  popops::addInPlace(graph, count, 1, body);
  Engine engine(graph, RepeatWhileTrue(condition, goesOn, body));
  engine.loadAndRun(device);
  show(readBack<int>(engine, "count", 1));
}

/// Costs that depend on what vertices are connected to, and values given as the bits of halves.
void estimates() {
  const Device device = smallDevice();
  Graph graph(device);
  graph.addCodelets(CODELETS);
  graph.registerPerfEstimator("Scale", [](const VertexIntrospector &v, const Target &target) -> VertexPerfEstimate {
    const auto factor = v.getFieldInfo("factor").getInitialValue<float>(target);
    return {10 + 2 * v.getFieldInfo("data").size() + std::uint64_t(factor), 3};
  });
  graph.registerCycleEstimator("SumRows", [](const VertexIntrospector &v, const Target &) -> std::uint64_t {
    const auto rows = v.getFieldInfo("rows");
    return 100 * rows.size() + rows[1].size();
  });
  auto t = graph.addVariable(FLOAT, {2, 5}, "t"), sums = graph.addVariable(FLOAT, {2}, "sums");
  const std::uint16_t bits[] = {0x3c00, 0xc100};
  auto halves = graph.addConstantHalf(HALF, {2}, bits, "halves");
  auto seeds = [&] { Sequence none; return getHwSeeds(graph, none); }();
  map(graph, {t, sums, halves}, 1);
  graph.createHostRead("halves", halves);
  auto cs = graph.addComputeSet("scale"), second = graph.addComputeSet("sum");
  auto v = graph.addVertex(cs, "Scale", {{"data", t.flatten()}}), w = graph.addVertex(second, "SumRows", {{"rows", t}, {"out", sums}});
  graph.setInitialValue(v["factor"], 7);
  graph.setTileMapping(v, 1);
  graph.setTileMapping(w, 1);
  std::cout << graph.getPerfEstimate(v).cycles << " " << graph.getPerfEstimate(v).flops << " " << graph.getPerfEstimate(w).cycles << "\n";
  graph.setPerfEstimate(w, 9);
  std::cout << graph.getCycleEstimate(w) << " " << seeds.shapeToString() << "\n";
  Engine engine(graph, Sequence{Execute(cs), Execute(second)});
  engine.loadAndRun(device);
  for (const StepProfile &step : engine.getEmulatorProfile().steps)
    if (step.kind == "execute")
      std::cout << step.computeCyclesBusiest << " " << step.estimated.size() << "\n";
  for (IeeeHalf x : readBack<IeeeHalf>(engine, "halves", 2))
    std::cout << float(x) << "\n";
}

/// Options from the environment, and those that the program overrides.
void options(const std::string &folder) {
  const Device device = smallDevice();
  Graph graph(device);
  OptionFlags flags{{"autoReport.directory", folder}};
  flags.set("target.hostSyncTimeout", "60");
  Engine engine(graph, Sequence(), flags);
  engine.loadAndRun(device);
  OptionFlags read;
  std::istringstream text(R"({"a": "x\"y", "b" : 12.5, "c":true})");
  readJSON(text, read);
  std::cout << read << " " << (read == OptionFlags{{"a", "x\"y"}, {"b", "12.5"}, {"c", "true"}}) << "\n";
}

/// Builtins without their header, vectors with named elements and in Clang's manner.
const char *const vectorCodelets = R"(#include <poplar/Vertex.hpp>
#include <ipu_vector_math>
#include <ipudef.h>
#include <poplar/QuarterFloat.hpp>
using namespace poplar;
typedef float pair __attribute__((ext_vector_type(2)));
class Vectors : public MultiVertex {
public:
  Input<Vector<float, VectorLayout::ONE_PTR, 8>> in;
  Output<Vector<float>> out;
  Output<Vector<unsigned>> drawn;
  bool compute(unsigned worker) {
    drawn[worker] = __builtin_ipu_urand32();
    if (worker)
      return true;
    const pair *pairs = (const pair *)&in[0];
    float2 both = {pairs[0].x + pairs[1].x, pairs[0].y * 2};
    both = both * both + 1.f;
    out[0] = both.x;
    out[1] = both[1];
    out[2] = __builtin_ipu_max(both.x, both.y) + __builtin_ipu_f16tof32(__builtin_ipu_f32tof16(0.1f));
    out[3] = __builtin_ipu_exp(float2{0.f, 1.f}).y + float((both > 20.f).y);
    const float2 bounded = ipu::andc(ipu::clamp(float2{-9.f, 9.f}, float2{-2.f, 5.f}), float2{-0.f, -0.f});
    out[3] += bounded.x * 10.f + bounded.y - 5.f * ipu::clamp(7.f, float2{0.f, 5.f});
    return true;
  }
};
/// A field of a type of its own is no edge.
struct Pair { float first, second; };
class Quarters : public Vertex {
public:
  Input<Vector<quarter>> in;
  Output<Vector<quarter>> out;
  Vector<Pair> own;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = in[out.size() - 1 - i];
    return true;
  }
};
)";

void vectors() {
  const Device device = smallDevice(1, 40);
  Graph graph(device);
  std::stringstream text(vectorCodelets);
  graph.addCodelets(text);
  const Tensor in = graph.addConstant<float>(FLOAT, {4}, {1, 2, 3, 4}), out = graph.addVariable(FLOAT, {40, 4}, "out");
  const Tensor drawn = graph.addVariable(UNSIGNED_INT, {40, 6}, "drawn");
  graph.setTileMapping(in, 0);
  const auto cs = graph.addComputeSet("vectors");
  for (unsigned tile = 0; tile < 40; ++tile) {
    const auto v = graph.addVertex(cs, "Vectors", {{"in", in}, {"out", out[tile]}, {"drawn", drawn[tile]}});
    graph.setTileMapping(v, tile);
    map(graph, {out[tile], drawn[tile]}, tile);
  }
  const Tensor eights = graph.addVariable(QUARTER, {3}, "eights"), turned = graph.addVariable(QUARTER, {3}, "turned");
  map(graph, {eights, turned}, 1);
  graph.setTileMapping(graph.addVertex(cs, "Quarters", {{"in", eights}, {"out", turned}}), 1);
  graph.createHostWrite("eights", eights);
  graph.createHostRead("turned", turned);
  graph.createHostRead("out", out);
  graph.createHostRead("drawn", drawn);
  Engine engine(graph, Repeat(2, Execute(cs)));
  engine.load(device);
  write(engine, "eights", std::vector<unsigned char>{7, 128, 255});
  engine.run();
  std::vector<float> values(160);
  engine.readTensor("out", values.data());
  std::cout.precision(9);
  show(std::vector<float>(values.begin(), values.begin() + 4));
  show(readBack<unsigned>(engine, "drawn", 240));
  show(readBack<unsigned char>(engine, "turned", 3));
}

/// Profiles by the calls of older programs and by the analysis library.
void reports(const std::string &folder) {
  const Device device(Target::createIPUTarget(1, 4, "IPU-POD16").getNumTiles() == 4 ? smallDevice() : smallDevice(1, 1));
  {
    Graph graph(device);
    graph.addCodelets(CODELETS);
    const Tensor t = graph.addVariable(FLOAT, {4}, VariableMappingMethod::LINEAR, "t");
    const auto v = graph.addVertex(graph.addComputeSet("a"), "Scale", {{"data", t}});
    graph.addComputeSet("b");
    graph.setTileMapping(v, 0);
    Engine engine(graph, Sequence(), {{"autoReport.all", "true"}, {"autoReport.directory", folder}});
    engine.loadAndRun(device);
    std::stringstream json;
    serializeToJSON(json, engine.getExecutionProfile());
    std::cout << json.str();
  }
  const pva::Report report = pva::openReport(folder + "/profile.pop");
  const pva::Graph &graph = report.compilation().graph();
  std::cout << graph.numComputeSets() << " " << graph.numVars() << " " << graph.numVertices() << " " << graph.numEdges() << " "
            << report.compilation().target().numTiles() << " " << report.poplarVersion().string() << "\n";
  std::ofstream(folder + "/other.pop") << "{}";
  for (const char *name : {"/other.pop", "/missing.pop"})
    try {
      pva::openReport(folder + name);
    } catch (const std::runtime_error &) {
      std::cout << "refused\n";
    }
}

} // namespace

int main(int argc, char **argv) {
  return runScenario({{"lif", lif}, {"pipeline", pipeline}, {"replicas", replicas}, {"estimates", estimates},
                      {"collatz", [&] { collatz(std::atoi(argv[2])); }}, {"options", [&] { options(argv[2]); }},
                      {"vectors", vectors}, {"reports", [&] { reports(argv[2]); }}},
                     argc, argv);
}
