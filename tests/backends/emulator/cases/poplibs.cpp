// Operations of the libraries on numbers that the test knows too.
#include "case.hpp"

#include <gcl/Collectives.hpp>
#include <popnn/LogSoftmax.hpp>
#include <popnn/Loss.hpp>
#include <popnn/NonLinearity.hpp>
#include <popnn/codelets.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/Fill.hpp>
#include <popops/Gather.hpp>
#include <popops/Loop.hpp>
#include <popops/NaN.hpp>
#include <popops/Rearrange.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/SelectScalarFromRows.hpp>
#include <popops/TopK.hpp>
#include <popops/UpdateScalarInRows.hpp>
#include <popops/Zero.hpp>
#include <popops/codelets.hpp>
#include <poprand/RandomGen.hpp>
#include <poprand/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/exceptions.hpp>

#include <cstdio>

namespace pe = popops::expr;

namespace {

using Shape = std::vector<std::size_t>;

/// Numbers between -6.25 and 6.25 in eighths, none twice in a row.
float wave(std::size_t i, unsigned seed) { return float(int((i * 37 + seed * 17 + 11) % 101) - 50) / 8; }

struct World {
  Device device;
  Graph graph;
  Sequence prog;
  std::vector<std::pair<std::string, Tensor>> shown;
  std::vector<std::pair<std::string, std::vector<float>>> written;
  unsigned seed = 0;

  explicit World(unsigned tiles = 7) : device(smallDevice(1, tiles)), graph(device) {
    popops::addCodelets(graph);
    poplin::addCodelets(graph);
    popnn::addCodelets(graph);
    poprand::addCodelets(graph);
  }
  /// A float tensor of waves, cast where another type is asked for.
  Tensor input(const Shape &shape, Type type = FLOAT) {
    const std::string name = "in" + std::to_string(seed);
    const Tensor t = graph.addVariable(FLOAT, shape, name);
    poputil::mapTensorLinearly(graph, t, 3, 1);
    graph.createHostWrite(name, t);
    std::vector<float> values(t.numElements());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = wave(i, seed);
    written.emplace_back(name, values);
    ++seed;
    return type == FLOAT ? t : popops::cast(graph, t, type, prog);
  }
  Tensor constant(const std::vector<int> &values, Type type = INT) {
    const Tensor t = graph.addConstant<int>(type, {values.size()}, values);
    graph.setTileMapping(t, 1);
    return t;
  }
  void show(const std::string &name, const Tensor &t) {
    const Tensor f = t.elementType() == FLOAT ? t : popops::cast(graph, t, FLOAT, prog, "shown");
    graph.createHostRead(name, f);
    shown.emplace_back(name, f);
  }
  Engine run() {
    Engine engine(graph, prog);
    engine.load(device);
    for (const auto &[name, values] : written)
      engine.writeTensor(name, values.data(), values.data() + values.size());
    engine.run();
    for (const auto &[name, t] : shown) {
      std::printf("%s:", name.c_str());
      for (float x : readBack<float>(engine, name, t.numElements()))
        std::printf(" %.9g", x);
      std::printf("\n");
    }
    std::fflush(stdout);
    return engine;
  }
};

void elementwise() {
  World w;
  const Tensor a = w.input({3, 5}), b = w.input({3, 5}), row = w.input({5}), one = w.input({1});
  w.show("add", popops::add(w.graph, a, b, w.prog));
  w.show("row", popops::mul(w.graph, a, row, w.prog, "row"));
  w.show("one", popops::sub(w.graph, a, one, w.prog));
  w.show("number", popops::div(w.graph, 2.f, a, w.prog));
  w.show("turned", popops::add(w.graph, a.reshape({5, 3}).transpose(), b, w.prog));
  w.show("gt", popops::gt(w.graph, a, b, w.prog));
  w.show("select", popops::select(w.graph, a, b, popops::lt(w.graph, a, 0.f, w.prog), w.prog));
  w.show("clamp", popops::clamp(w.graph, a, -1.f, 2.5f, w.prog));
  w.show("tanh", popops::tanh(w.graph, a, w.prog));
  w.show("floor", popops::floor(w.graph, a, w.prog));
  w.show("expression", popops::map(w.graph, pe::Add(pe::Mul(pe::_1, pe::Const(0.5f)), pe::Sigmoid(pe::_2 - 1)), {a, b}, w.prog));
  const Tensor c = popops::cast(w.graph, a, FLOAT, w.prog);
  popops::addInPlace(w.graph, c, b, w.prog);
  popops::mapInPlace(w.graph, pe::Square(pe::_1), {c}, w.prog);
  popops::mulInPlace(w.graph, c, 0.25f, w.prog);
  w.show("inPlace", c);
  const Tensor d = popops::cast(w.graph, b.slice(0, 3, 1), FLOAT, w.prog);
  popops::subInPlace(w.graph, d, d.transpose(), w.prog);
  w.show("ownTranspose", d);
  const Tensor out = w.graph.addVariable(FLOAT, {3, 5}, VariableMappingMethod::LINEAR, "out");
  popops::maxWithOutput(w.graph, a, b, out, w.prog);
  w.show("max", out);
  const Tensor s = popops::cast(w.graph, a, FLOAT, w.prog);
  popops::scaledAddTo(w.graph, s, b, -0.5f, w.prog);
  popops::scaledAddTo(w.graph, s, b, one, w.prog);
  w.show("scaledAdd", poputil::duplicate(w.graph, s, w.prog));
  popops::zero(w.graph, s[1], w.prog);
  popops::fill(w.graph, s[2], w.prog, 3);
  w.show("filled", s);
  w.run();
}

void integers() {
  World w;
  const Tensor a = w.constant({7, -7, 12, 1 << 30, -1}), b = w.constant({3, 3, -5, 4, 1});
  w.show("div", popops::div(w.graph, a, b, w.prog));
  w.show("rem", popops::rem(w.graph, a, b, w.prog));
  w.show("mul", popops::mul(w.graph, a, b, w.prog));
  w.show("shr", popops::shiftRight(w.graph, a, 28, w.prog));
  w.show("shrse", popops::shiftRightSE(w.graph, a, 1, w.prog));
  w.show("and", popops::bitwiseAnd(w.graph, a, b, w.prog));
  w.show("popcount", popops::popcount(w.graph, a, w.prog));
  w.show("clz", popops::countLeadingZeros(w.graph, a, w.prog));
  w.run();
}

void halves() {
  World w;
  const Tensor a = w.input({9}, HALF), b = w.input({9}, HALF);
  w.show("fused", popops::map(w.graph, pe::Add(pe::Mul(pe::_1, pe::_2), pe::Const(0.1f)), {a, b}, w.prog));
  w.show("sum", popops::reduce(w.graph, a, {0}, popops::Operation::ADD, w.prog));
  w.run();
}

void reductions() {
  World w;
  const Tensor t = w.input({4, 5, 6});
  const auto show = [&](const char *name, popops::Operation op, const Shape &dims) {
    w.show(name, popops::reduce(w.graph, t, dims, op, w.prog, name));
  };
  show("all", popops::Operation::ADD, {0, 1, 2});
  show("last", popops::Operation::MAX, {2});
  show("first", popops::Operation::MIN, {0});
  show("outer", popops::Operation::SQUARE_ADD, {0, 2});
  const Tensor scale = w.input({1}), out = w.graph.addVariable(FLOAT, {5}, VariableMappingMethod::LINEAR, "out");
  popops::fill(w.graph, out, w.prog, 10.f);
  std::vector<ComputeSet> sets;
  popops::reduceWithOutput(w.graph, t, out, {0, 2}, popops::ReduceParams(popops::Operation::ADD, true, scale), sets, "update");
  for (const ComputeSet &set : sets)
    w.prog.add(Execute(set));
  w.show("update", out);
  std::vector<Tensor> many;
  popops::reduceMany(w.graph, {{t, {1}, popops::Operation::ADD}, {t, {0, 1}, popops::Operation::MAX}}, many, w.prog);
  w.show("many0", many[0]);
  w.show("many1", many[1]);
  w.show("any", popops::reduce(w.graph, popops::gt(w.graph, t, 6.f, w.prog), {1, 2}, popops::Operation::LOGICAL_OR, w.prog));
  w.run();
}

void products(std::size_t m, std::size_t k, std::size_t n, unsigned tiles) {
  World w(tiles);
  const Tensor a = w.input({m, k}), b = w.input({k, n}), c = w.input({m, n});
  w.show("product", poplin::matMul(w.graph, a, b, w.prog));
  w.show("half", poplin::matMul(w.graph, popops::cast(w.graph, a, HALF, w.prog), popops::cast(w.graph, b, HALF, w.prog), w.prog, FLOAT));
  poplin::matMulAcc(w.graph, c, 0.5f, a, b, w.prog);
  w.show("acc", c);
  const Tensor g = w.input({2, m, k}), h = w.input({2, k, n});
  w.show("grouped", poplin::matMulGrouped(w.graph, g, h, w.prog, FLOAT));
  const Tensor left = poplin::createMatMulInputLHS(w.graph, FLOAT, {m, k}, {k, n}, "left");
  w.prog.add(Copy(a, left));
  w.show("vector", poplin::matMul(w.graph, left, b.slice(0, 1, 1).flatten(), w.prog));
  w.run();
}

void slices() {
  World w;
  const Tensor t = w.input({6, 4, 3});
  const Tensor at = w.constant({4}, UNSIGNED_INT), both = w.constant({5, 2}, UNSIGNED_INT), rows = w.constant({2, 0, 2}, UNSIGNED_INT);
  w.show("slice", popops::dynamicSlice(w.graph, t, at, {0}, {2}, w.prog));
  w.show("round", popops::dynamicSlice(w.graph, t, w.constant({5}, UNSIGNED_INT), {0}, {2}, w.prog));
  w.show("two", popops::dynamicSlice(w.graph, t, both, {0, 1}, {1, 2}, w.prog));
  const Tensor u = popops::cast(w.graph, t, FLOAT, w.prog), s = w.input({1, 2, 3});
  popops::dynamicUpdate(w.graph, u, s, both, {0, 1}, {1, 2}, w.prog);
  w.show("update", u);
  w.show("multi", popops::multiSlice(w.graph, t, rows.expand({1}), {0}, {1}, w.prog));
  w.show("gather", popops::gather(w.graph, t, rows, 1, w.prog));
  const Tensor v = popops::cast(w.graph, t, FLOAT, w.prog), m = w.input({3, 1, 4, 3}), scale = w.input({1});
  popops::multiUpdateAdd(w.graph, v, m, rows.expand({1}), scale, {0}, {1}, w.prog);
  w.show("updateAdd", v);
  // Elements of the last two dimensions at once, in another order than theirs.
  const Tensor places = w.constant({2, 3, 0, 1, 2, 3}, UNSIGNED_INT).reshape({3, 2});
  const Tensor points = popops::multiSlice(w.graph, t, places, {2, 1}, {1, 1}, w.prog);
  w.show("points", points);
  const Tensor x = popops::cast(w.graph, t, FLOAT, w.prog);
  popops::multiUpdateAdd(w.graph, x, points, places, scale, {2, 1}, {1, 1}, w.prog);
  w.show("pointsAdd", x);
  const Tensor table = t.reshape({6, 12}), columns = w.constant({3, 11, 0, -1, 12, 5}, UNSIGNED_INT);
  w.show("scalars", popops::selectScalarFromRows(w.graph, table, columns, w.prog));
  const Tensor y = popops::cast(w.graph, table, FLOAT, w.prog);
  popops::updateScalarInRows(w.graph, y, columns, w.prog);
  w.show("scalarsLess", y);
  w.show("transposed", popops::rearrange::partialTranspose(w.graph, t, w.prog));
  w.run();
}

void loops() {
  World w;
  const Tensor sum = w.graph.addVariable(UNSIGNED_INT, {1}, VariableMappingMethod::LINEAR, "sum");
  popops::zero(w.graph, sum, w.prog);
  w.prog.add(popops::countedLoop(w.graph, 2, 11, 3, [&](const Tensor &i) {
    Sequence body;
    popops::addInPlace(w.graph, sum, i, body);
    return body;
  }));
  w.show("sum", sum);
  const Tensor rounds = w.graph.addVariable(INT, {}, VariableMappingMethod::LINEAR, "rounds");
  popops::zero(w.graph, rounds, w.prog);
  Sequence round;
  popops::addInPlace(w.graph, rounds, 1, round);
  w.prog.add(popops::countedForLoop(w.graph, 10, -1, -3, round));
  w.show("rounds", rounds);
  w.run();
}

void networks() {
  World w;
  const Tensor x = w.input({3, 4}), labels = w.constant({1, 0, 3}, UNSIGNED_INT), loss = w.input({3}), delta = w.input({3, 4});
  const Tensor right = w.graph.addVariable(UNSIGNED_INT, {1}, VariableMappingMethod::LINEAR, "right");
  popops::fill(w.graph, right, w.prog, 5);
  const Tensor y = popnn::nonLinearity(w.graph, popnn::NonLinearityType::SOFTMAX, x, w.prog);
  w.show("softmax", y);
  w.show("logSoftmax", popnn::logSoftmax(w.graph, popops::mul(w.graph, x, 40.f, w.prog), w.prog));
  w.prog.add(popnn::calcLoss(w.graph, y, labels, loss, delta, right, popnn::CROSS_ENTROPY_LOSS));
  w.show("loss", loss);
  w.show("delta", delta);
  w.show("right", right);
  w.show("softmaxGradient", popnn::nonLinearityInputGradient(w.graph, popnn::NonLinearityType::SOFTMAX, y, x, w.prog));
  w.show("geluGradient", popnn::nonLinearityInputGradient(w.graph, popnn::NonLinearityType::GELU, x, popops::cast(w.graph, y, FLOAT, w.prog), w.prog));
  const auto top = popops::topKWithPermutation(w.graph, w.prog, x, popops::TopKParams(2, true, popops::SortOrder::DESCENDING));
  w.show("top", top.first);
  w.show("topAt", top.second);
  Tensor bestAt;
  w.show("best", popnn::topK(w.graph, x, bestAt, 2, true, w.prog));
  w.show("bestAt", bestAt);
  const auto most = popnn::maxAndArgMax(w.graph, x, w.prog), least = popnn::minAndArgMin(w.graph, x, w.prog);
  w.show("most", poplar::concat(most.first, least.first));
  w.show("mostAt", poplar::concat(most.second, least.second));
  const Tensor infinite = popops::div(w.graph, x, 0.f, w.prog), none = popops::sub(w.graph, infinite, infinite, w.prog);
  Tensor found = popops::hasNaN(w.graph, infinite, w.prog).expand({0});
  for (const Tensor &t : {popops::hasNaN(w.graph, none, w.prog), popops::hasNaNOrInf(w.graph, infinite, w.prog), popops::hasNaNOrInf(w.graph, x, w.prog)})
    found = poplar::concat(found, t.expand({0}));
  w.show("found", popops::cast(w.graph, found, INT, w.prog));
  const Tensor hot = w.graph.addVariable(INT, {3, 4}, VariableMappingMethod::LINEAR, "hot");
  popops::encodeOneHot(w.graph, labels, hot, w.prog);
  w.show("hot", hot);
  const Tensor counted = w.graph.addVariable(INT, {5}, VariableMappingMethod::LINEAR, "counted");
  popops::iota(w.graph, counted, -2, w.prog);
  w.show("iota", counted);
  w.run();
}

void randoms() {
  World w;
  const Tensor like = w.input({4000});
  const Tensor seed = w.constant({5, 6}, UNSIGNED_INT);
  w.show("uniform", poprand::uniform(w.graph, &seed, 1, like, FLOAT, -2, 3, w.prog));
  w.show("again", poprand::uniform(w.graph, &seed, 1, like, FLOAT, -2, 3, w.prog));
  w.show("other", poprand::uniform(w.graph, &seed, 2, like, FLOAT, -2, 3, w.prog));
  w.show("normal", poprand::normal(w.graph, nullptr, 0, like, FLOAT, 1, 2, w.prog));
  w.show("truncated", poprand::truncatedNormal(w.graph, nullptr, 0, like, FLOAT, 0, 1, 1.5, w.prog));
  w.show("bernoulli", poprand::bernoulli(w.graph, nullptr, 0, like, FLOAT, 0.25, w.prog));
  w.run();
}

/// Cycles of every compute set of a program.
void cycles() {
  World w(1);
  w.graph.getTarget();
  const auto input = [&](std::size_t n, Type type) {
    const Tensor t = w.graph.addVariable(type, {n});
    w.graph.setTileMapping(t, 0);
    return t;
  };
  for (const Type &type : {FLOAT, HALF}) {
    const Tensor a = input(1000, type), b = input(1000, type);
    popops::add(w.graph, a, b, w.prog);
    popops::addInPlace(w.graph, a, b, w.prog);
    popops::exp(w.graph, a, w.prog);
    popops::tanh(w.graph, a, w.prog);
    popops::sigmoid(w.graph, a, w.prog);
    popops::div(w.graph, a, b, w.prog);
    popops::gt(w.graph, a, b, w.prog);
  }
  popops::sqrt(w.graph, input(13, FLOAT), w.prog);
  popops::mul(w.graph, input(7, FLOAT), input(7, FLOAT), w.prog);
  popops::add(w.graph, input(100, INT), input(100, INT), w.prog);
  popops::div(w.graph, input(100, INT), input(100, INT), w.prog);
  const Tensor table = input(4000, FLOAT).reshape({10, 400}), at = input(1, UNSIGNED_INT);
  popops::dynamicSlice(w.graph, table, at, {0}, {1}, w.prog);
  popops::dynamicSlice(w.graph, table.slice(0, 2, 1), at, {0}, {1}, w.prog);
  popops::dynamicUpdate(w.graph, table, input(1200, FLOAT).reshape({3, 400}), at, {0}, {3}, w.prog);
  popops::multiSlice(w.graph, table, input(14, UNSIGNED_INT).expand({1}), {0}, {1}, w.prog);
  Engine engine(w.graph, w.prog);
  engine.load(w.device);
  engine.run();
  for (const StepProfile &step : engine.getEmulatorProfile().steps)
    if (step.kind == "execute")
      std::printf("%.0f ", step.computeCyclesBusiest);
  std::printf("\n");
}

void mapping(unsigned tiles, std::size_t n, unsigned least, unsigned grain, const std::string &type) {
  World w(tiles);
  const Tensor t = w.graph.addVariable(type == "half" ? HALF : FLOAT, {n});
  if (least)
    poputil::mapTensorLinearly(w.graph, t, least, grain);
  else
    poputil::mapTensorLinearly(w.graph, t);
  for (const auto &ranges : w.graph.getTileMapping(t))
    for (const Interval &i : ranges)
      std::printf("%zu-%zu ", i.begin(), i.end());
  std::printf("\n");
}

/// Two replicas add what they have; each reads its own stream.
void replicas() {
  const Device device = smallDevice(2);
  Graph graph(device, replication_factor(2));
  popops::addCodelets(graph);
  const Tensor x = graph.addVariable(FLOAT, {3}, VariableMappingMethod::LINEAR, "x"), index = graph.addReplicationIndexConstant();
  const Tensor own = graph.addVariable(UNSIGNED_INT, {1}, VariableMappingMethod::LINEAR, "own");
  graph.setTileMapping(index, 0);
  const DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, 3);
  Sequence prog(Copy(in, x), Copy(index.expand({0}), own));
  const Tensor sum = gcl::allReduceCrossReplica(graph, x, gcl::CollectiveOperator::ADD, prog, {gcl::CommGroupType::ALL, 2});
  const Tensor all = gcl::allGatherCrossReplica(graph, x, prog), mean = gcl::allReduceCrossReplica(graph, x, gcl::CollectiveOperator::MEAN, prog);
  prog.add(AssumeEqualAcrossReplicas(sum));
  const std::vector<std::pair<std::string, Tensor>> shown{{"x", x}, {"sum", sum}, {"mean", mean}, {"all", all}};
  for (const auto &[name, t] : shown)
    graph.createHostRead(name, t);
  graph.createHostRead("own", own);
  Engine engine(graph, prog);
  engine.load(device);
  float values[6] = {1, 2, 3, 10, 20, 30};
  engine.connectStream("in", values, values + 6);
  engine.run();
  for (const auto &[name, t] : shown) {
    std::cout << name << ": ";
    show(readBack<float>(engine, name, 2 * t.numElements()));
  }
  std::cout << "own: ";
  show(readBack<unsigned>(engine, "own", 2));
  Engine(graph, AssumeEqualAcrossReplicas(own)).loadAndRun(device);
  Engine(graph, Sequence(Copy(index.expand({0}), own), AssumeEqualAcrossReplicas(own))).loadAndRun(device);
}

/// Six replicas in groups of three: what each has of a sum, a gathering, a scattered sum and the values of member 1.
void groups() {
  const Device device = smallDevice(6);
  for (const gcl::CommGroupType type : {gcl::CommGroupType::CONSECUTIVE, gcl::CommGroupType::ORTHOGONAL}) {
    Graph graph(device, replication_factor(6));
    popops::addCodelets(graph);
    const Tensor x = graph.addVariable(INT, {4}, VariableMappingMethod::LINEAR, "x");
    const DataStream in = graph.addHostToDeviceFIFO("in", INT, 4);
    Sequence prog{Copy(in, x)};
    const gcl::CommGroup three(type, 3);
    const std::vector<Tensor> shown{gcl::allReduceCrossReplica(graph, x, gcl::CollectiveOperator::ADD, prog, three),
                                    gcl::allGatherCrossReplica(graph, x, prog, three),
                                    gcl::reduceScatterCrossReplica(graph, x, gcl::CollectiveOperator::ADD, prog, three),
                                    gcl::broadcastCrossReplica(graph, x, prog, three, 1)};
    for (std::size_t i = 0; i < shown.size(); ++i)
      graph.createHostRead(std::to_string(i), shown[i]);
    Engine engine(graph, prog);
    engine.load(device);
    std::vector<int> values(24);
    for (int i = 0; i < 24; ++i)
      values[unsigned(i)] = i * i;
    engine.connectStream("in", values.data(), values.data() + 24);
    engine.run();
    for (std::size_t i = 0; i < shown.size(); ++i)
      show(readBack<int>(engine, std::to_string(i), 6 * shown[i].numElements()));
  }
}

void virtualGraphs() {
  World w(8);
  Graph upper = w.graph.createVirtualGraph(4, 8), odd = w.graph.createVirtualGraph(std::vector<unsigned>{1, 3, 5});
  std::cout << upper.getTarget().getNumTiles() << " " << odd.getTarget().getNumTiles() << "\n";
  const Tensor a = upper.addVariable(FLOAT, {8}, VariableMappingMethod::LINEAR, "a"), b = odd.addVariable(FLOAT, {3}, "b");
  for (unsigned i = 0; i < 3; ++i)
    odd.setTileMapping(b[i], i);
  const auto tiles = [&](const Graph &graph, const Tensor &t) {
    const auto mapping = graph.getTileMapping(t);
    for (std::size_t tile = 0; tile < mapping.size(); ++tile)
      if (!mapping[tile].empty())
        std::cout << tile << " ";
    std::cout << "\n";
  };
  tiles(w.graph, a);
  tiles(upper, a);
  tiles(w.graph, b);
  tiles(odd, b);
  odd.setTileMapping(b, 3);
}

void errors(const std::string &name) {
  World w;
  const Tensor a = w.input({3, 5}), b = w.input({4}), i = w.constant({1, 2, 3});
  if (name == "broadcast")
    popops::add(w.graph, a, b, w.prog);
  else if (name == "types")
    popops::add(w.graph, b.slice(0, 3), i, w.prog);
  else if (name == "condition")
    popops::select(w.graph, a, a, a, w.prog);
  else if (name == "shapes")
    poplin::matMul(w.graph, a, a, w.prog);
  else if (name == "dimension")
    popops::reduce(w.graph, a, {2}, popops::Operation::ADD, w.prog);
  else if (name == "placeholder")
    popops::map(w.graph, pe::Add(pe::_1, pe::_3), {a, a}, w.prog);
  else if (name == "slice")
    popops::dynamicSlice(w.graph, a, i.slice(0, 1), {1}, {6}, w.prog);
  else if (name == "unmapped")
    popops::mapInPlace(w.graph, pe::Neg(pe::_1), {w.graph.addVariable(FLOAT, {3}, "ghost")}, w.prog);
  else if (name == "codelets") {
    Graph bare(w.device);
    popops::add(bare, a, a, w.prog);
  }
}

/// Two groups, every transform, its gradient, and the pass back through a plain one.
void convolutions() {
  World w;
  using In = poplin::ConvParams::InputTransform;
  using Out = poplin::ConvParams::OutputTransform;
  const poplin::ConvParams params(FLOAT, FLOAT, 2, {5, 6}, {2, 3}, 2, 3, 2, In({0, 1}, {1, 0}, {2, 1}, {1, 2}, {0, 1}, {false, true}),
                                  In({0, 0}, {0, 0}, {2, 1}, {0, 0}, {1, 0}, {true, false}), Out({1, 0}, {0, 1}, {1, 2}, {0, 1}, {1, 0}));
  const Tensor x = w.input({2, 4, 5, 6}), k = w.input({2, 3, 2, 2, 3});
  const Tensor y = poplin::convolution(w.graph, x, k, params, false, w.prog, "conv");
  w.show("y", y);
  const Tensor z = w.input(y.shape());
  w.show("weights", poplin::calculateWeightDeltas(w.graph, z, x, params, w.prog));
  const poplin::ConvParams plain(FLOAT, 1, {4, 4}, {3, 3}, 2, 3, 1);
  const Tensor weights = poplin::createWeights(w.graph, plain, "plain"), biases = poplin::createBiases(w.graph, y.slice(0, 3, 1));
  w.prog.add(Copy(w.input(weights.shape()), weights));
  w.prog.add(Copy(w.input({3}), biases));
  Tensor forward = poputil::duplicate(w.graph, poplin::convolution(w.graph, w.input({1, 2, 4, 4}), weights, plain, false, w.prog), w.prog);
  poplin::addBias(w.graph, forward, biases, w.prog);
  w.show("forward", forward);
  const poplin::ConvParams back(FLOAT, FLOAT, 1, {2, 2}, {3, 3}, 3, 2, 1, In({0, 0}, {0, 0}, {1, 1}, {2, 2}, {2, 2}, {false, false}), In(2), Out(2));
  w.show("back", poplin::convolution(w.graph, forward, weights, back, true, w.prog));
  w.run();
}

} // namespace

int main(int argc, char **argv) {
  const auto number = [&](int i) { return unsigned(std::atoi(argv[i])); };
  return runScenario(
      {{"elementwise", elementwise}, {"integers", integers}, {"halves", halves}, {"reductions", reductions}, {"slices", slices},
       {"loops", loops}, {"networks", networks}, {"convolutions", convolutions}, {"randoms", randoms}, {"cycles", cycles}, {"replicas", replicas}, {"groups", groups},
       {"virtualGraphs", virtualGraphs},
       {"products", [&] { products(number(2), number(3), number(4), number(5)); }},
       {"mapping", [&] { mapping(number(2), number(3), number(4), number(5), argv[6]); }},
       {"errors", [&] {
          try {
            errors(argv[2]);
          } catch (const poputil::poplibs_error &e) {
            std::cout << "poplibs_error: " << e.what() << "\n";
          }
        }}},
      argc, argv);
}
