// Parts of the documented interface that programs use beside the everyday ones.
#include "case.hpp"

#include <cmath>

#include <gcl/Collectives.hpp>
#include <poplar/CSRFunctions.hpp>
#include <poplar/Quarter.hpp>
#include <poplar/TypeTraits.hpp>
#include <poplin/MatMul.hpp>
#include <popnn/LogSoftmax.hpp>
#include <popnn/NonLinearity.hpp>
#include <popnn/codelets.hpp>
#include <poplin/codelets.hpp>
#include <popops/Loop.hpp>
#include <popops/Pad.hpp>
#include <popops/Reduce.hpp>
#include <popops/Sort.hpp>
#include <popops/TopK.hpp>
#include <popops/codelets.hpp>
#include <poputil/VarStructure.hpp>

namespace {

void hostFunction() {
  Device device = smallDevice();
  Graph graph(device);
  const Tensor in = graph.addConstant<float>(FLOAT, {3}, {1, 2, 3}), out = graph.addVariable(INT, {2}, "out"),
               flag = graph.addConstant<unsigned>(UNSIGNED_INT, {1}, 7);
  map(graph, {in, out, flag}, 1);
  const HostFunction sum = graph.addHostFunction("sum", {{FLOAT, 3}, {UNSIGNED_INT, 1}}, {{INT, 2}});
  const HostFunction note = graph.addHostFunction("note", {{INT, 2}}, {});
  graph.createHostRead("out", out);
  Engine engine(graph, Sequence{Call(sum, {in, flag}, {out}), Call(note, {out}, {})});
  engine.load(device);
  engine.connectHostFunction("sum", 0, [](ArrayRef<const void *> ins, ArrayRef<void *> outs) {
    const float *values = static_cast<const float *>(ins[0]);
    int *sums = static_cast<int *>(outs[0]);
    sums[0] = int(values[0] + values[1] + values[2]);
    sums[1] = int(*static_cast<const unsigned *>(ins[1]));
  });
  struct Note final : HostCallback {
    void operator()(ArrayRef<const void *> ins, ArrayRef<void *>) override { std::cout << "note " << static_cast<const int *>(ins[0])[1] << "\n"; }
  };
  engine.connectHostFunction("note", 0, HostCallbackHandle(std::make_unique<Note>()));
  engine.run();
  show(readBack<int>(engine, "out", 2));
}

void hostFunctionErrors() {
  Device device = smallDevice();
  Graph graph(device);
  const HostFunction f = graph.addHostFunction("f", {{FLOAT, 3}}, {});
  const Tensor t = graph.addVariable(FLOAT, {3}, "t");
  map(graph, {t}, 0);
  try {
    Call(f, {t, t}, {});
  } catch (const graph_connection_error &e) {
    std::cout << e.what() << "\n";
  }
  Engine engine(graph, Call(f, {t}, {}));
  engine.connectHostFunction("g", 0, [](ArrayRef<const void *>, ArrayRef<void *>) {});
}

void values() {
  std::cout << versionString().substr(0, 4) << HALF.isFloatingPoint() << QUARTER.isFloatingPoint() << INT.isFloatingPoint()
            << TypeTraits::make<float>().size << TypeTraits::isSimpleType<std::string>() << "\n";
  std::cout << (smallDevice().getTarget() == smallDevice().getTarget()) << (smallDevice().getTarget() == smallDevice(2).getTarget())
            << Device::createCPUDevice(2).getTarget().getNumIPUs() << Device::createSimulatorDevice(smallDevice(2).getTarget()).getTarget().getNumIPUs()
            << "\n";
  FloatingPointBehaviour behaviour;
  behaviour.esr = false;
  std::cout << behaviour.inv << (!behaviour).esr << "\n";
  Graph graph;
  const Tensor t = graph.addVariable(FLOAT, {4}, "t");
  std::cout << graph.cloneN(INT, t, 3).shapeToString() << t.slices({{0, 1}, {2, 4}}).size() << t.slices(std::vector<Interval>{{0, 3}})[0].numElements()
            << "\n";
  const DataStream stream = graph.addHostToDeviceFIFO("in", FLOAT, 4);
  std::cout << (stream.kind() == DataStreamType::HostToDeviceFIFO) << SourceLocation::Current().isValid() << "\n";
}

void engine() {
  Device device = smallDevice();
  Graph graph(device);
  const Tensor t = graph.addVariable(INT, {3}, "t"), small = graph.addVariable(UNSIGNED_SHORT, {1}, "small");
  map(graph, {t, small}, 0);
  graph.setInitialValue(small, std::size_t(9));
  graph.createHostWrite("t", t);
  graph.createHostRead("t", t);
  graph.createHostRead("small", small);
  Engine engine(compileGraph(graph, {Sequence()}, {}, {}, "name"));
  const Engine::TimerTimePoint start = Engine::getTimeStamp();
  engine.load(device);
  engine.writeTensor("t", {4, 5, 6});
  show(readBack<int>(engine, "t", 3));
  show(readBack<std::uint16_t>(engine, "small", 1));
  engine.reportTiming("load", start, Engine::getTimeStamp());
}

void vectors() {
  Device device = smallDevice();
  Graph graph(device);
  std::stringstream code("#include <poplar/Vertex.hpp>\n#include <poplar/VectorTypes.hpp>\n"
                         "template <class A, class B> struct Twice : poplar::Vertex {\n"
                         "  poplar::InOut<poplar::Vector<int>> x;\n"
                         "  void compute() { x[0] += sizeof(A); x[1] += sizeof(B); }\n};\n"
                         "template struct Twice<float, float2>;\ntemplate struct Twice<half4, uchar4>;\ntemplate struct Twice<float2, float4>;\n");
  graph.addCodelets(code);
  const Tensor t = graph.addConstant<int>(INT, {2}, 0), x = graph.addVariable(INT, {2}, "x");
  map(graph, {t, x}, 0);
  graph.createHostRead("x", x);
  Sequence prog{Copy(t, x)};
  for (const char *name : {"Twice<float,float2>", "Twice<half4,uchar4>", "Twice<float2,float4>"}) {
    const ComputeSet cs = graph.addComputeSet(name);
    graph.setTileMapping(graph.addVertex(cs, name, {{"x", x}}), 0);
    prog.add(Execute(cs));
  }
  Engine engine(graph, prog);
  engine.loadAndRun(device);
  show(readBack<int>(engine, "x", 2));
}

void braces() {
  Device device = smallDevice();
  Graph graph(device);
  std::stringstream code("#include <poplar/Vertex.hpp>\n#include <poplar/VectorTypes.hpp>\n#include <poplar/VectorListTypes.hpp>\n"
                         "struct Braces : poplar::Vertex {\n  poplar::Output<poplar::Vector<float>> x;\n"
                         "  void compute() { float2 v; v = {1.5f, 2.f}; half4 h; h = {1, 2, 3, 4}; x[0] = v[0] + v[1]; x[1] = float(h[3]); }\n};\n");
  graph.addCodelets(code);
  const Tensor x = graph.addVariable(FLOAT, {2}, "x");
  map(graph, {x}, 0);
  graph.createHostRead("x", x);
  const ComputeSet cs = graph.addComputeSet("braces");
  graph.setTileMapping(graph.addVertex(cs, "Braces", {{"x", x}}), 0);
  Engine engine(graph, Execute(cs));
  engine.loadAndRun(device);
  show(readBack<float>(engine, "x", 2));
}

void keys() {
  Device device = smallDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  const Tensor k = graph.addVariable(INT, {2, 5}, "k"), v = graph.addVariable(HALF, {2, 5}, "v");
  graph.setInitialValue(k.flatten(), std::vector<int>{5, 1, 4, 2, 3, -1, 9, 0, 7, 7});
  graph.setInitialValue(v.flatten(), std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  map(graph, {k, v}, 2);
  Sequence prog;
  const Tensor sorted = popops::sortKeyValue(graph, k, v, 1, prog), columns = popops::sortKeyValue(graph, k, v, 0, prog);
  const auto [top, places] = popops::topKKeyValue(graph, prog, k, v, popops::TopKParams(2, true, popops::SortOrder::DESCENDING));
  for (const auto &[name, t] : std::map<std::string, Tensor>{{"sorted", sorted}, {"columns", columns}, {"top", top}, {"places", places}})
    prog.add(PrintTensor(name, t));
  popops::sortKeyValueInPlace(graph, k, v, 1, prog);
  prog.add(PrintTensor("v", v));
  Engine engine(graph, prog);
  engine.setPrintTensorStream(std::cout);
  engine.loadAndRun(device);
}

void loops() {
  Device device = smallDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  const Tensor i = graph.addVariable(INT, {1}, "i"), limit = graph.addVariable(INT, {1}, "limit");
  map(graph, {i, limit}, 0);
  graph.createHostWrite("limit", limit);
  Sequence body{PrintTensor("up", i)}, down{PrintTensor("down", i)}, prog;
  prog.add(popops::countedForLoop(graph, i, 1, limit, 3, body));
  prog.add(popops::countedForLoop(graph, i, 9, limit, -1, down));
  Engine engine(graph, prog);
  engine.setPrintTensorStream(std::cout);
  engine.load(device);
  engine.writeTensor("limit", {8});
  engine.run();
}

void pads() {
  Device device = smallDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  const Tensor t = graph.addConstant<int>(INT, {2, 3}, {1, 2, 3, 4, 5, 6});
  map(graph, {t}, 0);
  Sequence prog{PrintTensor("edge", popops::pad(t, {1, 0}, {0, 2}, popops::padding::Type::EDGE)),
                PrintTensor("reflect", popops::pad(t, 2, 1, 1, popops::padding::Type::REFLECT))};
  Engine engine(graph, prog);
  engine.setPrintTensorStream(std::cout);
  engine.loadAndRun(device);
}

void groupings() {
  Device device = smallDevice(1, 4);
  Graph graph(device);
  const Tensor t = graph.addVariable(FLOAT, {4, 6, 8}, "t");
  map(graph, {t}, 0);
  const Tensor shuffled = t.dimShuffle({0, 2, 1});
  const Tensor blocked = t.reshape({4, 6, 2, 4}).dimShuffle({0, 2, 1, 3});
  std::cout << poputil::detectInnermostGrouping(graph, t) << " " << poputil::detectInnermostGrouping(graph, shuffled) << " "
            << poputil::detectInnermostGrouping(graph, blocked) << "\n";
  for (const Tensor &view : {t, shuffled, blocked}) {
    for (const auto &[dimension, size] : poputil::detectDimGroupings(graph, view))
      std::cout << dimension << ":" << size << " ";
    std::cout << "\n";
  }
}

void exchange() {
  Device device = smallDevice(4, 2);
  Graph graph(device, replication_factor(4));
  popops::addCodelets(graph);
  const Tensor t = graph.addVariable(INT, {4, 2}, "t");
  map(graph, {t}, 0);
  Sequence prog;
  const Tensor out = gcl::allToAllCrossReplica(graph, t, prog);
  graph.createHostWrite("t", t);
  graph.createHostRead("out", out);
  Engine engine(graph, prog);
  engine.load(device);
  std::vector<int> all(32);
  std::iota(all.begin(), all.end(), 0);
  engine.writeTensor("t", all);
  engine.run();
  show(readBack<int>(engine, "out", 32));
  std::cout << gcl::CollectiveOperator::SQUARE_ADD << "\n";
}

/// Slices by their indices, values by the type that is named, an output of one element for a sum of all, times as texts.
void pieces() {
  Device device = smallDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  graph.addCodelets(CODELETS);
  const Tensor t = graph.addConstant<float>(FLOAT, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), sum = graph.addVariable(FLOAT, {1}, "sum"),
               part = graph.addVariable(FLOAT, {3, 2}, "part");
  map(graph, {t, sum, part}, 0);
  const std::vector<unsigned> rows{3, 0, 3};
  Sequence prog{Copy(concat(t.slices(rows)), part)};
  const ComputeSet work = graph.addComputeSet("work");
  const VertexRef v = graph.addVertex(work, "Scale", {{"data", part.flatten()}});
  graph.setInitialValue<float>(v["factor"], std::size_t(10));
  graph.setTileMapping(v, 0);
  prog.add(Execute(work));
  popops::reduceWithOutput(graph, t, sum, {0, 1}, popops::Operation::ADD, prog);
  graph.createHostRead("part", part);
  graph.createHostRead("sum", sum);
  Engine engine(graph, prog);
  const auto start = Engine::getTimeStamp();
  engine.loadAndRun(device);
  show(readBack<float>(engine, "part", 6));
  show(readBack<float>(engine, "sum", 1));
  show(std::vector<std::size_t>{t.slices(ArrayRef<unsigned>(rows), 0).at(2).dim(0), t.slices({{0, 1}, {2, 4}}, 0).at(1).dim(0)});
  std::cout << Engine::reportTiming(start, start) << "\n";
}

/// A function whose code is kept in a buffer runs as any other.
void functionBuffers() {
  Device device = smallDevice();
  Graph graph(device);
  const Tensor t = graph.addVariable(INT, {1}, "t"), seven = graph.addConstant<int>(INT, {1}, 7);
  map(graph, {t, seven}, 0);
  const Function f = graph.addFunction(Copy(seven, t)), other = graph.addFunction(Sequence());
  const FunctionBuffer buffer = graph.addFunctionBuffer(f, FunctionBufferMappingType::REMOTE);
  graph.createHostRead("t", t);
  Engine engine(graph, Sequence{Copy(buffer, f), Call(f), Copy(f, buffer)});
  engine.loadAndRun(device);
  show(readBack<int>(engine, "t", 1));
  std::cout << (buffer == graph.addFunctionBuffer(f, FunctionBufferMappingType::REMOTE)) << "\n";
  for (const std::function<void()> &wrong :
       {std::function<void()>([&] { Copy(buffer, other); }), std::function<void()>([&] { graph.addFunctionBuffer(9, FunctionBufferMappingType::NONE); })})
    try {
      wrong();
    } catch (const poplar_error &error) {
      std::cout << error.what() << "\n";
    }
}

/// Constants from memory of any type, and vertices of popnn by name: rows are picked from constants.
void picks() {
  const Device device = smallDevice(1, 4);
  Graph graph(device);
  popnn::addCodelets(graph);
  Sequence prog;
  const ComputeSet cs = graph.addComputeSet();
  const auto pick = [&](const std::string &which, const Tensor &values, const Tensor &labels) {
    const std::string small = which == "Max" ? "max" : "min";
    const Tensor value = graph.addVariable(values.elementType(), {}, "value"), label = graph.addVariable(labels.elementType(), {}, "label");
    const VertexRef v = graph.addVertex(
        cs, "popnn::Reduce" + which + "ClassSparse<" + values.elementType().toString() + "," + labels.elementType().toString() + ">",
        {{"activations", values}, {"labels", labels}, {small + "Value", value}, {small + "Index", label}});
    graph.setTileMapping(v, 1);
    for (const Tensor &t : {values, labels, value, label})
      graph.setTileMapping(t, 1);
    prog.add(PrintTensor("value", value));
    prog.add(PrintTensor("label", label));
  };
  prog.add(Execute(cs));
  const float reals[] = {1.5f, -2.f, 4.f, 4.f};
  const int numbers[] = {7, -8, 9, 10};
  const unsigned short halves[] = {0x3c00, 0xc000, 0x0000, 0x4000};
  const void *memory = reals;
  const TypeTraits ofHalves{2, 2, true, true, false, true};
  pick("Max", graph.addConstant(FLOAT, {4}, memory, TypeTraits::make<float>(), false, "reals"),
       graph.addConstant(INT, {4}, static_cast<const void *>(numbers), TypeTraits::make<int>(), false));
  pick("Min", graph.addConstant(HALF, {4}, static_cast<const void *>(halves), ofHalves, false),
       graph.addConstant(UNSIGNED_INT, {4}, static_cast<const void *>(numbers), TypeTraits::make<int>(), true));
  pick("Min", graph.addConstant(INT, {4}, static_cast<const void *>(numbers), TypeTraits::make<int>(), false),
       graph.addConstant(UNSIGNED_INT, {4}, static_cast<const void *>(numbers + 2), TypeTraits::make<int>(), true));
  Engine engine(graph, prog);
  engine.setPrintTensorStream(std::cout);
  engine.loadAndRun(device);
  std::cout << engine.getEmulatorProfile().steps[0].computeCyclesBusiest << "\n";
}

/// Softmax without the codelets of popnn; its gradient; then a function that needs them.
void softmax() {
  const Device device = smallDevice(1, 4);
  Graph graph(device);
  popops::addCodelets(graph);
  Sequence prog;
  const Tensor x = graph.addConstant<float>(FLOAT, {1, 3}, {0.f, std::log(2.f), std::log(5.f)});
  graph.setTileMapping(x, 0);
  const Tensor y = popnn::nonLinearity(graph, popnn::NonLinearityType::SOFTMAX, x, prog);
  const Tensor logs = popnn::logSoftmax(graph, x, prog);
  prog.add(PrintTensor("y", y));
  prog.add(PrintTensor("logs", logs));
  prog.add(PrintTensor("gradient", popnn::nonLinearityInputGradient(graph, popnn::NonLinearityType::SOFTMAX, y, x, prog)));
  Engine engine(graph, prog);
  engine.setPrintTensorStream(std::cout);
  engine.loadAndRun(device);
  try {
    popnn::nonLinearity(graph, popnn::NonLinearityType::TANH, x, prog);
  } catch (const unknown_vertex_type &error) {
    std::cout << error.what() << "\n";
  }
}

/// The plan of a product, and the tiles that share its output.
void plan() {
  const Device device = smallDevice(1, 12);
  Graph graph(device);
  poplin::addCodelets(graph);
  poplin::matMulReportPlan(std::cout, graph, HALF, FLOAT, {40, 300}, {300, 20});
  poplin::matMulGroupedReportPlan(std::cout, graph, FLOAT, FLOAT, {3, 7, 5}, {3, 5, 2});
  std::size_t tiles = 0;
  for (const auto &intervals : graph.getTileMapping(poplin::createMatMulOutput(graph, HALF, FLOAT, {40, 300}, {300, 20})))
    tiles += !intervals.empty();
  std::cout << tiles << "\n";
}

void report() {
  Device device = smallDevice();
  Graph graph(device);
  const OptionFlags options{{"autoReport.all", "true"}, {"autoReport.directory", "made/here"}};
  Engine engine(graph, Sequence(), options);
  engine.loadAndRun(device);
}

} // namespace

int main(int argc, char **argv) {
  return runScenario({{"hostFunction", hostFunction}, {"hostFunctionErrors", hostFunctionErrors}, {"values", values}, {"engine", engine},
                      {"vectors", vectors}, {"braces", braces}, {"keys", keys}, {"loops", loops}, {"pads", pads}, {"groupings", groupings}, {"exchange", exchange},
                      {"report", report}, {"plan", plan}, {"picks", picks}, {"softmax", softmax}, {"pieces", pieces}, {"functionBuffers", functionBuffers}},
                     argc, argv);
}
