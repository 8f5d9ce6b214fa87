// More of the documented interface of hosts: types, streams, names, orders of elements, quarters, what libraries record.
#include "case.hpp"

#include <poplar/EngineOptions.hpp>
#include <poplar/MetadataCreation.hpp>
#include <poplar/RuntimeOptions.hpp>
#include <poplar/TypeConversion.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/codelets.hpp>
#include <poputil/DebugInfo.hpp>
#include <poputil/GraphFunction.hpp>
#include <poputil/OptionParsing.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/VarStructure.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/cyclesTables.hpp>

#include <pva/pva.hpp>

#include <fstream>

/// Names that host code, or a library such as Eigen, has of its own.
struct half {
  int compute = 3;
};
namespace quarter {
constexpr int compute = 4;
}

namespace {

template <class... Values> void line(const Values &...values) {
  const char *between = "";
  ((std::cout << between << values, between = " "), ...);
  std::cout << "\n";
}

/// Programs ask whether a type has a device type.
template <class T, class = void> struct HasDeviceType : std::false_type {};
template <class T> struct HasDeviceType<T, decltype(void(equivalent_device_type<T>::value))> : std::true_type {};
static_assert(HasDeviceType<float>::value && HasDeviceType<bool>::value && !HasDeviceType<std::string>::value, "only numbers have one");

constexpr const char *named = R"(
#include <poplar/Vertex.hpp>
#include <poplar/VectorTypes.hpp>
template <class A, class B> struct Pair {};
namespace outer { enum class Kind { First, Second }; enum Plain { Low = 3, High = 9 };
template <class T, unsigned N, bool B, outer::Kind K, outer::Plain P> struct Named : poplar::Vertex {
  poplar::InOut<poplar::Vector<int>> x;
  void compute() { x[0] += sizeof(T) * N + B; }
}; }
template <class... T> struct Many : poplar::Vertex {
  poplar::InOut<poplar::Vector<int>> x;
  void compute() { x[0] += (sizeof(T) + ...); }
};
template struct outer::Named<Pair<float, Pair<half4, short2>>, 3, true, outer::Kind::Second, outer::High>;
template struct Many<float, float2, Pair<unsigned, half>, const float *>;
template struct Many<unsigned char, half4>;
)";

void names() {
  Device device = smallDevice();
  Graph graph(device);
  std::stringstream code(named);
  graph.addCodelets(code);
  const Tensor x = graph.addVariable(INT, {1}, "x");
  map(graph, {x}, 0);
  graph.setInitialValue(x, 0);
  graph.createHostRead("x", x);
  Sequence prog;
  // sizeof: 1 * 3 + 1; 4 + 8 + 1 + 8; 1 + 8.
  for (const std::string &name :
       {std::string("outer::Named<Pair<float,Pair<half4,short2>>,3,true,outer::Kind::Second,outer::High>"),
        std::string("Many<float, float2, Pair<unsigned int, half>, float*>"), poputil::templateVertex("Many", UNSIGNED_CHAR, StringRef("half4"))}) {
    const ComputeSet cs = graph.addComputeSet(name);
    graph.setTileMapping(graph.addVertex(cs, name, {{"x", x}}), 0);
    prog.add(Execute(cs));
  }
  Engine engine(graph, prog);
  engine.loadAndRun(device);
  show(readBack<int>(engine, "x", 1));
}

void sequences() {
  Device device = smallDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  const Tensor n = graph.addVariable(INT, {1}, "n"), one = graph.addConstant<int>(INT, {1}, 1);
  map(graph, {n, one}, 0);
  graph.setInitialValue(n, 0);
  graph.createHostRead("n", n);
  Sequence add;
  popops::addInPlace(graph, n, one, add, "add");
  const Sequence repeated = Repeat(3, add), nested(repeated, add, Repeat(2, add)), listed({add, repeated}, {"listed"}), several(std::vector<Program>{add, add});
  const Program all = Sequence{repeated, nested, listed, several};
  std::vector<std::pair<int, int>> steps;
  Engine engine(compileGraph(graph, {all, add}, {}, [&](int done, int of) { steps.emplace_back(done, of); }, "program"));
  engine.load(device);
  engine.run(0, "all", RuntimeOptions());
  engine.run(1, "again");
  // 3 + (3 + 1 + 2) + (1 + 3) + 2 + 1.
  show(readBack<int>(engine, "n", 1));
  line(steps.empty(), all == all, all == Program(add), Sequence().isEmpty());
  std::ostringstream dumped;
  dumpProgram(graph, Sequence{Repeat(2, Sequence{Sync(SyncType::INTERNAL)})}, dumped);
  std::cout << dumped.str();
  line(Copy(n, n), engine.getReport().compilation().tiles().size(), engine.getReport().compilation().tiles()[0].memory().total().excludingGaps() > 0);
}

void typeOf(Type &type) { line(type, type.size(), type.isFloatingPoint(), type.isIntegral(), type.requiresMetadata()); }

void types() {
  for (Type *type : {&FLOAT, &HALF, &UNSIGNED_SHORT, &QUARTER, &QUARTER_METADATA, &LONG})
    typeOf(*type);
  const Target target = smallDevice(2).getTarget();
  line(target, TargetType::CPU, Interval(2, 5), Interval(2, 5) < Interval(2, 6), Interval(3, 4) >= Interval(2, 9));
  line(target.getTypeLimitsMaxAs<int>(SHORT), target.getTypeLimitsMinAs<int>(SIGNED_CHAR), target.getTypeLimitsMaxAs<unsigned>(UNSIGNED_INT),
       target.getTypeLimitsMaxAs<double>(HALF), target.getMemoryElementOffsets().size());
  try {
    target.getTypeLimitsMaxAs<std::uint8_t>(INT);
  } catch (const poplar_error &e) {
    line(e.getMessage());
  }
  const StringRef text = "some text";
  const int values[] = {7, 8, 9};
  const ArrayRef<int> view(values);
  line(text, text == "some text", std::string(text) + "!", StringRef("ab") < StringRef("b"), view.front(), view.back(), view == ArrayRef<int>({7, 8, 9}));
  line(IeeeHalf(1.0009765625f).bit16(), float(IeeeHalf::fromBits(0xc000)), equivalent_device_type<IeeeHalf>().value,
       equivalent_device_type<unsigned char>().value);
  const double doubles[] = {1.5, -2.25, 1000.3, 0};
  double back[4];
  std::uint16_t halves[4];
  copyDoubleToDeviceHalf(target, doubles, halves, 4);
  copyDeviceHalfToDouble(target, halves, back, 4);
  line(back[0], back[1], back[2], back[3]);
  std::int16_t shorts[4];
  convertToDeviceType(SHORT, ArrayRef<double>(doubles), shorts);
  float floats[4];
  convertFromDeviceType(SHORT, shorts, ArrayRef<float>(floats));
  line(shorts[0], shorts[1], shorts[2], floats[1]);
  line(half().compute, quarter::compute);
}

void layouts() {
  Device device = smallDevice();
  Graph graph(device);
  const Tensor t = graph.addVariable(FLOAT, {2, 3}, "t"), constant = graph.addConstant<float>(FLOAT, {2}, {1, 2});
  map(graph, {t, constant}, 0);
  Tensor columns = t.transpose().flatten(), other = graph.addVariable(INT, {6}, "other");
  graph.reorderToSimplify(&columns, {&other});
  line(columns == t.flatten());
  other.outputRegions(std::cout);
  for (const VariableInterval &region : concat(t[1].slice(1, 3), t[0]).getVarRegions())
    line(region.interval);
  line(t.containsConstant(), concat(t.flatten(), constant).containsConstant(), constant.isParallelWriteable());
  line(graph.findUnbroadcastTensor(t.expand({1}).broadcast(5, 1).broadcast(2, 0)).shapeToString());
  line(graph.getSortedContiguousRegions(t.flatten(), std::vector<std::vector<Interval>>{{{4, 6}}, {{0, 2}, {2, 3}}}).size());
  Graph tiles = graph.createVirtualGraph(std::vector<unsigned>{3, 1});
  line(tiles.convertVirtualTileToPhysicalTile(0), tiles.convertPhysicalTileToVirtualTile(1));
  line(t, Copy(t, t), graph.addDeviceToHostFIFO("out", FLOAT, 6));
}

void fields() {
  Device device = smallDevice();
  Graph graph(device);
  std::stringstream code("#include <poplar/Vertex.hpp>\nstruct Fields : poplar::Vertex {\n  poplar::Input<poplar::Vector<float>> row;\n"
                         "  poplar::Vector<poplar::Input<poplar::Vector<float>>> rows;\n  unsigned short n;\n  void compute() {}\n};\n");
  graph.addCodelets(code);
  line(graph.getMaxFieldDim("Fields", "row", 0), graph.getMaxFieldDim("Fields", "rows", 1), graph.getMaxVertexFieldValue("Fields", "n"),
       graph.getMaxVertexFieldValueAs<std::int64_t>("Fields", "n"));
  graph.getMaxFieldDim("Fields", "row", 1);
}

void quarters() {
  using Format = QuarterMetadata::Format;
  for (const Format format : {Format::F143, Format::F152})
    for (const int scale : {0, -3}) {
      const QuarterMetadata metadata(format, scale);
      for (int bits = 0; bits < 256; ++bits)
        std::cout << fromQuarter(std::uint8_t(bits), metadata) << " ";
      std::cout << "\n";
      for (int i = -400; i <= 400; ++i)
        std::cout << int(toQuarter(i * i * i * 0.000371, metadata, true)) << " ";
      std::cout << "\n";
    }
  line(int(QuarterMetadata(Format::F152, -7).getScale()), QuarterMetadata::fromBinary(QuarterMetadata(Format::F152, -7).getBinary()) == QuarterMetadata(Format::F152, -7),
       int(toQuarter(1e9, {})), int(toQuarter(-1e9, {}, true)));
}

void quarterTensors() {
  Device device = smallDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  const Tensor in = graph.addVariable(FLOAT, {5}, "in"), scale = graph.addVariable(INT, {}, "scale");
  map(graph, {in, scale}, 1);
  graph.createHostWrite("in", in);
  graph.createHostWrite("scale", scale);
  Sequence prog;
  const Tensor constant = createConstantMetadataTensor(graph, QuarterMetadata::Format::F143, 1);
  const Tensor variable = createVariableMetadataTensor(graph, QuarterMetadata::Format::F152, scale, prog);
  const Tensor narrow = popops::cast(graph, in, QUARTER, constant, prog);
  const Tensor other = graph.clone(QUARTER, variable, narrow);
  popops::castWithOutput(graph, narrow, other, prog);
  const Tensor back = popops::cast(graph, other, HALF, prog), first = popops::cast(graph, narrow, FLOAT, prog);
  graph.createHostRead("bits", narrow.reinterpret(UNSIGNED_CHAR));
  graph.createHostRead("first", first);
  graph.createHostRead("back", popops::cast(graph, back, FLOAT, prog));
  line(narrow.hasMetadata(), in.hasMetadata(), narrow.slice(1, 3).getMetadata() == constant);
  Engine engine(graph, prog);
  engine.load(device);
  engine.writeTensor("in", {1.f, -0.3f, 400.f, 1e6f, 0.001f});
  engine.writeTensor("scale", {-2});
  engine.run();
  show(readBack<std::uint8_t>(engine, "bits", 5));
  show(readBack<float>(engine, "first", 5));
  show(readBack<float>(engine, "back", 5));
  in.getMetadata();
}

void debugInfo() {
  DebugInfo::initializeStreamer("debug.json");
  {
    poputil::PoplibsOpDebugInfo outer("model", {{"size", 3}, {"name", "x\"y"}});
    const DebugNameAndId named(outer, "layer");
    const DebugInfo inner({named, "matmul"}, "mine");
    line(named.getPathName(), named.getName(), inner.getPathName(), inner.getParentId() == outer.getId());
    const DebugContext step(inner, "step"), context(step, "add");
    line(context, context.getLocation().getLineNumber() > 0);
    outer.setValue("flags", poputil::toProfileValue(OptionFlags{{"a", "b"}}));
    outer.addOutput(Tensor());
  }
  DebugInfo::closeStreamer();
  const ProfileValue value = ProfileValue::Map{{"list", ProfileValue::Vector{1, true, "t"}}, {"number", 2.5}};
  line(value, value["list"][2].asString(), value["number"].asDouble(), value["list"].size());
  DebugInfo::closeStreamer();
}

void functions() {
  using namespace poputil::graphfn;
  Device device = smallDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  const Tensor a = graph.addConstant<int>(INT, {2}, {1, 2}), b = graph.addConstant<int>(INT, {2}, {10, 20}), sum = graph.addVariable(INT, {2}, "sum");
  map(graph, {a, b, sum}, 0);
  graph.setInitialValue(sum, 100);
  graph.createHostRead("sum", sum);
  Sequence prog;
  unsigned built = 0;
  VoidFunction accumulate(graph, {input(a), inout(sum)}, [&](std::vector<Tensor> &args, Sequence &body) {
    ++built;
    popops::addInPlace(graph, args[1], args[0], body);
  });
  TensorFunction twice(graph, {input(a)}, [&](std::vector<Tensor> &args, Sequence &body) { return popops::add(graph, args[0], args[0], body); });
  ProgramFunction move(graph, {input(a), output(b)}, [](std::vector<Tensor> &args) { return Copy(args[0], args[1]); }, true);
  std::vector<Tensor> first{a, sum}, second{b, sum}, only{b};
  accumulate(first, prog);
  accumulate(second, prog);
  const Tensor doubled = twice(only, prog);
  std::vector<Tensor> third{doubled, sum};
  accumulate(third, prog);
  const Tensor moved = graph.clone(b);
  std::vector<Tensor> fourth{sum, moved};
  prog.add(move(fourth));
  graph.createHostRead("moved", moved);
  Engine engine(graph, prog);
  engine.loadAndRun(device);
  show(readBack<int>(engine, "sum", 2));
  show(readBack<int>(engine, "moved", 2));
  line(built);
  try {
    accumulate(only, prog);
  } catch (const poputil::poplibs_error &e) {
    line(e.what());
  }
}

void options() {
  OptionFlags flags;
  readJSONFromEnv("CHOSEN", flags);
  line(flags);
  double rate = 0;
  int n = 0;
  bool fast = false;
  std::vector<int> sizes;
  const poplibs::OptionSpec spec{{"rate", poplibs::OptionHandler::createWithDouble(rate, 0, true, 1)}, {"n", poplibs::OptionHandler::createWithInteger(n)},
                                 {"fast", poplibs::OptionHandler::createWithBool(fast)}, {"sizes", poplibs::OptionHandler::createWithList(sizes)}};
  spec.parse("rate", "0.25");
  spec.parse("n", "0x1f");
  spec.parse("fast", "true");
  spec.parse("sizes", "4,5");
  spec.parse("unknown", "1", true);
  line(rate, n, fast, sizes.size(), sizes[1]);
  for (const auto &[name, value] : std::map<std::string, std::string>{{"rate", "2"}, {"fast", "maybe"}, {"n", "3x"}, {"slow", ""}})
    try {
      spec.parse(name, value);
    } catch (const invalid_option &e) {
      line(e.what());
    }
  EngineOptions(OptionFlags{{"nonsense", "1"}});
}

void regions() {
  Device device = smallDevice(1, 4);
  Graph graph(device);
  const std::vector<std::vector<Interval>> lists{{{0, 2}, {10, 13}}, {{20, 24}}};
  for (const auto &part : poputil::splitRegions(lists, 2, 3)) {
    for (const auto &region : part)
      for (const Interval &i : region)
        std::cout << i << " ";
    std::cout << "| ";
  }
  std::cout << "\n";
  for (const auto &part : poputil::splitRegions({{0, 9}}, 1, 2, 0, UINT_MAX, 4))
    line(part.size(), part.back());
  std::vector<Interval> merged{{4, 6}, {0, 2}, {2, 4}, {8, 9}};
  poputil::mergeAdjacentRegions(merged);
  line(merged.size(), merged[0], poputil::calculateUnshufflingIntervals({{3, 5}, {0, 3}})[0]);
  show(poputil::balancedPartition(10, 4));
  show(poputil::unflattenIndex(std::vector<int>{2, 3, 4}, 17));
  const Tensor t = graph.addVariable(FLOAT, {4, 6}, "t");
  const Tensor factored = poputil::factorDims(t, {2, 3});
  line(factored.shapeToString(), factored[1][0][1][2] == t[3][2], poputil::unfactorDims(factored, 2) == t);
  line(poputil::castToDeviceHalfValue(device.getTarget(), 0.1) != 0.1, poputil::checkAccuracyWhenCast(device.getTarget(), 1e5, FLOAT, HALF, 0.1),
       poputil::checkAccuracyWhenCast(device.getTarget(), 0.1, FLOAT, HALF, 1e-3));
  unsigned contiguous = 0;
  const Tensor parts = poputil::createPartitionableTensor(graph, HALF, {5, 7}, {2, 3}, "parts");
  poputil::iterateTensorPartitions(parts, {2, 3}, [&](const std::vector<std::size_t> &i, const Tensor &part) {
    contiguous += part.isContiguous();
    if (i == std::vector<std::size_t>{1, 2})
      std::cout << part.shapeToString() << " ";
  });
  line(parts.shapeToString(), contiguous);
  poputil::TensorUseTracker tracker(4);
  tracker.add(graph, 1, t[0]);
  tracker.add(graph, 2, t.slice(0, 3));
  poputil::TensorUseTracker resolved = tracker;
  resolved.resolve(graph, 2, 2, true); // then neither the grain nor the minimum matter
  tracker.mapTensorsByUse(graph, 2, 2, true);
  const auto byUse = graph.getTileMapping(t);
  graph.setTileMapping(t, 3);
  resolved.mapTensorsByUse(graph, 1, 1);
  if (graph.getTileMapping(t) != byUse)
    std::cerr << "resolved uses are mapped differently\n", std::exit(1);
  const auto mapping = graph.getTileMapping(t);
  for (unsigned tile = 0; tile < 4; ++tile)
    for (const Interval &i : mapping[tile])
      std::cout << tile << ":" << i << " ";
  std::cout << "\n";
  line(poputil::createBroadcastOperand(graph, t, FLOAT, 1).shapeToString(), poputil::transformTileIndex(3, 4, 2, false),
       poputil::invTransformTileIndex(2, 4, 2, false), poputil::calcLinearTileMappingAndNewOffset(graph, t, 3).second);
}

void groupedSlices() {
  Device device = smallDevice();
  Graph graph(device);
  popops::addCodelets(graph);
  const popops::SlicePlan plan = popops::embedding::plan(graph, FLOAT, 2, 5, 3, {4}, {});
  const Tensor t = popops::createGroupedSliceableTensor(graph, FLOAT, 2, {5, 3}, {0}, {1}, plan, {});
  const Tensor s = popops::createGroupedSliceTensor(graph, FLOAT, 2, {5, 3}, {0}, {1}, 4, plan, {});
  const Tensor indices = popops::createGroupedIndicesTensor(graph, 2, {0}, 4, plan, {});
  const Tensor scale = graph.addConstant<float>(FLOAT, {}, 0.5f);
  map(graph, {scale}, 0);
  for (const auto &[name, tensor] : std::map<std::string, Tensor>{{"t", t}, {"s", s}, {"indices", indices}})
    graph.createHostWrite(name, tensor);
  Sequence prog;
  graph.createHostRead("slices", popops::groupedMultiSlice(graph, t, indices, {0}, {1}, prog, plan, {}));
  graph.createHostRead("columns", popops::multiSlice(graph, t[0], {2u, 0u}, 1, prog));
  popops::groupedMultiUpdateAdd(graph, t, s, indices, scale, {0}, {1}, prog, plan, {});
  graph.createHostRead("t", t);
  Engine engine(graph, prog);
  engine.load(device);
  std::vector<float> values(30);
  std::iota(values.begin(), values.end(), 0.f);
  engine.writeTensor("t", values);
  std::vector<float> updates(24);
  std::iota(updates.begin(), updates.end(), 100.f);
  engine.writeTensor("s", updates);
  engine.writeTensor("indices", {4u, 0u, 4u, 2u, 1u, 1u, 3u, 0u});
  engine.run();
  show(readBack<float>(engine, "slices", 24));
  show(readBack<float>(engine, "columns", 10));
  show(readBack<float>(engine, "t", 30));
}

VertexPerfEstimate getPerfEstimateForScaled(const VertexIntrospector &vertex, const Target &, const Type &type, unsigned factor) {
  return VertexPerfEstimate(vertex.getFieldInfo("x").size() * factor + type.size());
}

void estimators() {
  Device device = smallDevice();
  Graph graph(device);
  std::stringstream code("#include <poplar/Vertex.hpp>\nnamespace mine { template <class T, unsigned N> struct Scaled : poplar::Vertex {\n"
                         "  poplar::InOut<poplar::Vector<T>> x;\n  void compute() {}\n};\ntemplate struct Scaled<float, 5>; }\n");
  graph.addCodelets(code);
  poputil::internal::registerPerfFunctions(graph, {CYCLE_ESTIMATOR_ENTRY(mine, Scaled, FLOAT, 5u)});
  const Tensor x = graph.addVariable(FLOAT, {6}, "x");
  line(graph.getPerfEstimate(graph.addVertex(graph.addComputeSet(), "mine::Scaled<float,5>", {{"x", x}})).cycles);
}

/// What pva reports of two runs, beside what the emulator's own profile counts.
void execution() {
  Device device = smallDevice();
  Graph graph(device);
  graph.addCodelets(CODELETS);
  const Tensor t = graph.addVariable(FLOAT, {8}, "t"), far = graph.addVariable(FLOAT, {8}, "far");
  graph.setTileMapping(t, 1);
  graph.setTileMapping(far, 2);
  const ComputeSet work = graph.addComputeSet("work");
  const VertexRef v = graph.addVertex(work, "Scale", {{"data", t}});
  graph.setInitialValue(v["factor"], 2.f);
  graph.setTileMapping(v, 1);
  const DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, 8);
  const Block first(Sequence{Copy(in, t), Execute(work)}, "stage1"), second(Sequence{Copy(t, far, false, "move"), Execute(work)}, "stage2");
  const OptionFlags options{{"profiler.blocks.filter", "stage."}, {"profiler.programs.filter", "move"}};
  Engine engine(graph, Sequence{Repeat(2, Sequence{first, second}), Execute(work)}, options);
  std::vector<float> values(8, 1.f);
  engine.connectStream("in", values.data());
  engine.load(device);
  engine.run(0, "once");
  engine.run(0, "again");
  const pva::Report report = engine.getReport();
  std::uint64_t cycles = 0, busy = 0, all = 0;
  for (const pva::Run &run : report.execution().runs())
    std::cout << run.name() << ":" << run.steps().size() << " ";
  for (const pva::ExecutionStep &step : report.execution().steps()) {
    cycles += step.ipus().at(0).cycles();
    for (const pva::ComputeSetRun &set : step.computeSets())
      busy += set.cyclesByTile().at(1), all += std::accumulate(set.cyclesByTile().begin(), set.cyclesByTile().end(), std::uint64_t(0));
  }
  const EmulatorProfile profile = engine.getEmulatorProfile();
  // The control of loops belongs to no step.
  line(cycles <= std::uint64_t(profile.cycles) && cycles > 0, busy == std::uint64_t(profile.computeCycles[1]), all == busy);
  std::uint64_t before = 0;
  for (const pva::Block &block : report.execution().blocks(1)) {
    std::cout << (block.isStreamCopy() ? "stream" : block.program()->name()) << block.isCommon() << (block.cyclesFrom() >= before) << (block.cyclesTo() >= block.cyclesFrom())
              << block.tile() << " ";
    before = block.cyclesFrom();
  }
  const pva::Program &whole = *report.compilation().programs().at(0), &loop = *whole.children().at(0);
  std::cout << "\n";
  line(loop.type() == pva::Program::Type::Repeat, loop.children().at(0)->children().at(1)->name(), whole.children().at(1)->name());
  engine.resetExecutionProfile();
  line(engine.getReport().execution().steps().size(), Engine(graph, Sequence{}).getReport().execution().runs().size());
}

/// When tiles 0 and 1 compute for 60 and 120 cycles, between a transfer from the host and an exchange.
void intervals() {
  Device device = smallDevice();
  Graph graph(device);
  graph.addCodelets(CODELETS);
  const Tensor t = graph.addVariable(FLOAT, {2, 8}, "t"), far = graph.addVariable(FLOAT, {8}, "far");
  graph.setTileMapping(far, 2);
  const ComputeSet work = graph.addComputeSet("work, \"both\"");
  for (unsigned tile = 0; tile < 2; ++tile) {
    graph.setTileMapping(t[tile], tile);
    const VertexRef v = graph.addVertex(work, "Scale", {{"data", t[tile]}});
    graph.setInitialValue(v["factor"], 2.f);
    graph.setTileMapping(v, tile);
    graph.setPerfEstimate(v, 10 * (tile + 1));
  }
  const DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, 8);
  const Sequence program{Copy(in, far), Execute(work), Copy(t[0], far, false, "move")};
  for (const bool traced : {true, false}) {
    Engine engine(graph, program, traced ? OptionFlags{{"debug.instrument", "true"}} : OptionFlags{});
    std::vector<float> values(8, 1.f);
    engine.connectStream("in", values.data());
    engine.load(device);
    engine.run(0);
    engine.reportIntervals(std::cout);
  }
}

} // namespace

int main(int argc, char **argv) {
  return runScenario({{"names", names}, {"sequences", sequences}, {"types", types}, {"layouts", layouts}, {"fields", fields}, {"quarters", quarters},
                      {"quarterTensors", quarterTensors}, {"debugInfo", debugInfo}, {"functions", functions}, {"options", options},
                      {"regions", regions}, {"groupedSlices", groupedSlices}, {"estimators", estimators}, {"execution", execution}, {"intervals", intervals}},
                     argc, argv);
}
