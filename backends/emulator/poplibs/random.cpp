// poprand: a separate counter on every tile, hashed with the seed.
#include <poprand/RandomGen.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace poprand {

using namespace poplibs;
using poplar::DebugContext;
using poplar::core::Direction;
using poplar::program::Sequence;

namespace {

enum class Kind { Uniform, Normal, Truncated, Bernoulli };

struct Drawing {
  Kind kind;
  Type type;
  double a, b, c;
  std::uint64_t stream;
  bool seeded;
};
template <class Archive> void describe(Archive &a, Drawing &d) { a(d.kind)(d.type)(d.a)(d.b)(d.c)(d.stream)(d.seeded); }

/// The mixing function of splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Source {
  std::uint64_t key, count = 0;
  /// A random number in [0, 1).
  double uniform() { return double(mixed(key ^ mixed(count++)) >> 11) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586 * uniform()); }
};

double drawn(const Drawing &d, Source &source) {
  double x = 0;
  switch (d.kind) {
  case Kind::Uniform:
    return isReal(d.type) ? d.a + (d.b - d.a) * source.uniform() : std::floor(d.a + (d.b - d.a + 1) * source.uniform());
  case Kind::Normal:
    return d.a + d.b * source.normal();
  case Kind::Truncated:
    do
      x = source.normal();
    while (std::fabs(x) > d.c);
    return d.a + d.b * x;
  case Kind::Bernoulli:
    return source.uniform() < d.a;
  }
  return x;
}

void runDraw(const State &state) {
  const Drawing &d = *static_cast<const Drawing *>(state.shared);
  const Slot &out = state.slots[0], &counter = state.slots[1];
  std::uint32_t &round = *counter.as<std::uint32_t>();
  std::uint64_t seed = 0;
  if (d.seeded)
    std::memcpy(&seed, state.slots[2].data, sizeof seed);
  else
    ++round;
  Source source{mixed(seed ^ mixed(d.stream)) ^ mixed((std::uint64_t(round) << 32) ^ counter.as<std::uint32_t>()[1])};
  for (std::uint32_t i = 0; i < out.count; ++i) {
    const double x = drawn(d, source);
    if (d.type == poplar::FLOAT)
      out.as<float>()[i] = float(x);
    else if (d.type == poplar::HALF)
      out.as<half>()[i] = half(float(x));
    else
      out.as<std::int32_t>()[i] = std::int32_t(x);
  }
}

Tensor draw(Graph &graph, const Tensor *seed, const Tensor &reference, Drawing d, Sequence &prog, const std::string &name) {
  requireLibrary(graph, "poprand");
  if (d.type != poplar::FLOAT && d.type != poplar::HALF && d.type != poplar::INT && d.type != poplar::UNSIGNED_INT)
    throw poputil::poplibs_error(name + ": random elements of type " + d.type.toString());
  if (seed && (seed->numElements() != 2 || seed->elementType() != poplar::UNSIGNED_INT))
    throw poputil::poplibs_error(name + ": a seed is two UNSIGNED_INT, not " + seed->shapeToString());
  d.seeded = seed != nullptr;
  // Every call generates another sequence, regardless of its modifier.
  if (!seed)
    d.stream ^= mixed(graph.getNumComputeSets() + 1);
  const Tensor out = outputLike(graph, d.type, reference.shape(), {reference}, name + "/Out"), flat = out.flatten();
  const poplar::ComputeSet computeSet = graph.addComputeSet(name);
  const std::string type = "poprand::Draw<" + d.type.toString() + ">[" + std::to_string(int(d.kind)) + "," + std::to_string(d.stream) + "," +
                           std::to_string(computeSet.getId()) + "]";
  std::vector<FieldSpec> fields{{"out", Direction::Output, d.type}, {"counter", Direction::InOut, poplar::UNSIGNED_INT}};
  if (seed)
    fields.push_back({"seed", Direction::Input, poplar::UNSIGNED_INT});
  builtinType(graph, type, fields, drawKind, d, 300);
  for (const TileWork &work : workOf(graph, flat, name)) {
    const Tensor counter = graph.addVariable(poplar::UNSIGNED_INT, {2}, name + "/counter");
    graph.setTileMapping(counter, work.tile);
    graph.setInitialValue(counter, std::vector<unsigned>{0, work.tile});
    const poplar::VertexRef v = graph.addVertex(computeSet, type);
    graph.connect(v["out"], pick(flat, work.intervals));
    graph.connect(v["counter"], counter);
    if (seed)
      graph.connect(v["seed"], seed->flatten());
    graph.setTileMapping(v, work.tile);
    graph.setPerfEstimate(v, sharedCycles(graph, 30 + workerShare(graph, work.elements, 2) * (d.kind == Kind::Uniform ? 3 : 8)));
  }
  prog.add(poplar::program::Execute(computeSet));
  return out;
}

} // namespace

Tensor uniform(Graph &graph, const Tensor *masterSeed, std::uint32_t seedModifier, const Tensor &reference, const Type &outType, double minVal,
               double maxVal, Sequence &prog, const DebugContext &context) {
  return draw(graph, masterSeed, reference, {Kind::Uniform, outType, minVal, maxVal, 0, seedModifier, false}, prog, contextName(context, "uniform"));
}

Tensor normal(Graph &graph, const Tensor *masterSeed, std::uint32_t seedModifier, const Tensor &reference, const Type &outType, double mean,
              double stdDev, Sequence &prog, const DebugContext &context) {
  return draw(graph, masterSeed, reference, {Kind::Normal, outType, mean, stdDev, 0, seedModifier, false}, prog, contextName(context, "normal"));
}

Tensor truncatedNormal(Graph &graph, const Tensor *masterSeed, std::uint32_t seedModifier, const Tensor &reference, const Type &outType,
                       double mean, double stdDev, double alpha, Sequence &prog, const DebugContext &context) {
  return draw(graph, masterSeed, reference, {Kind::Truncated, outType, mean, stdDev, alpha, seedModifier, false}, prog,
              contextName(context, "truncatedNormal"));
}

Tensor bernoulli(Graph &graph, const Tensor *masterSeed, std::uint32_t seedModifier, const Tensor &reference, const Type &outType, double prob,
                 Sequence &prog, const DebugContext &context) {
  return draw(graph, masterSeed, reference, {Kind::Bernoulli, outType, prob, 0, 0, seedModifier, false}, prog, contextName(context, "bernoulli"));
}

Tensor dropout(Graph &graph, const Tensor *masterSeed, std::uint32_t seedModifier, const Tensor &in, const Tensor &reference,
               double keepProbability, double scale, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "dropout");
  const Tensor kept = draw(graph, masterSeed, reference, {Kind::Bernoulli, in.elementType(), keepProbability, 0, 0, seedModifier, false}, prog, name);
  const Tensor out = outputLike(graph, in.elementType(), in.shape(), {in}, name + "/Out");
  using namespace popops::expr;
  mapTo(graph, Mul(_1, Mul(_2, Const(scale))), {in, kept}, out, prog, name);
  return out;
}

Tensor shapedDropout(Graph &graph, const Tensor *masterSeed, std::uint32_t seedModifier, const Tensor &in, const Tensor &reference,
                     double keepProbability, double scale, Sequence &prog, const DebugContext &context) {
  return dropout(graph, masterSeed, seedModifier, in, reference, keepProbability, scale, prog, contextName(context, "shapedDropout"));
}

Tensor logUniform(Graph &graph, const Tensor *masterSeed, std::uint32_t seedModifier, const Tensor &reference, const Type &outType, double minVal,
                  double maxVal, Sequence &prog, double base, const DebugContext &context) {
  const std::string name = contextName(context, "logUniform");
  if (minVal < 1 || maxVal <= minVal || base <= 1 || !isReal(outType))
    throw poputil::poplibs_error(name + ": numbers of type " + outType.toString() + " from " + std::to_string(minVal) + " to " + std::to_string(maxVal) +
                                 ", base " + std::to_string(base));
  // The base of the logarithm cancels out.
  const Tensor logs = uniform(graph, masterSeed, seedModifier, reference, poplar::FLOAT, std::log(minVal), std::log(maxVal), prog, name);
  const Tensor out = outputLike(graph, outType, reference.shape(), {reference}, name + "/Out");
  using namespace popops::expr;
  mapTo(graph, Cast(Exp(_1), outType), {logs}, out, prog, name);
  return out;
}

void setSeed(Graph &, const Tensor &, std::uint32_t, Sequence &, const DebugContext &) {}

} // namespace poprand

namespace poplibs {
const BuiltinKind drawKind{"poprand.draw", &poprand::runDraw, &readShared<poprand::Drawing>};
}
