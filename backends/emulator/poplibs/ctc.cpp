// popnn/CTCLoss.hpp and CTCInference.hpp: one vertex per sample.
#include <popnn/CTCInference.hpp>
#include <popnn/CTCLoss.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <popnn/LogSoftmax.hpp>
#include <popops/Cast.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"

namespace poplibs {

using poplar::core::Direction;

namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

/// The logarithm of a sum of exponentials.
double logSum(double a, double b) {
  if (a < b)
    std::swap(a, b);
  return a == never ? never : a + std::log1p(std::exp(b - a));
}

/// Data shared by the vertices of one loss, or of one search (`beam` > 0).
struct Ctc {
  std::uint32_t steps, classes, blank, beam, paths;
  bool softmaxGradient, zeroInfinity;
};
template <class Archive> void describe(Archive &a, Ctc &c) {
  a(c.steps)(c.classes)(c.blank)(c.beam)(c.paths)(c.softmaxGradient)(c.zeroInfinity);
}

/// Labels with blanks between and around them.
std::vector<std::uint32_t> withBlanks(const std::uint32_t *labels, std::uint32_t n, const Ctc &c) {
  std::vector<std::uint32_t> states(2 * n + 1, c.blank);
  for (std::uint32_t i = 0; i < n; ++i)
    states[2 * i + 1] = std::min(labels[i], c.classes - 1);
  return states;
}

/// Whether a path may go from state s - 2 to s, skipping the blank between two different labels.
bool mayJump(const std::vector<std::uint32_t> &states, std::size_t s, const Ctc &c) {
  return s >= 2 && states[s] != c.blank && states[s] != states[s - 2];
}

using Table = std::vector<std::vector<double>>;

/// Log probabilities of all path prefixes that end in a state at a step, including that step.
Table forwards(const float *y, std::uint32_t steps, const std::vector<std::uint32_t> &states, const Ctc &c) {
  Table a(steps, std::vector<double>(states.size(), never));
  for (std::size_t s = 0; s < std::min<std::size_t>(2, states.size()) && steps > 0; ++s)
    a[0][s] = y[states[s]];
  for (std::uint32_t t = 1; t < steps; ++t)
    for (std::size_t s = 0; s < states.size(); ++s) {
      double sum = a[t - 1][s];
      if (s >= 1)
        sum = logSum(sum, a[t - 1][s - 1]);
      if (mayJump(states, s, c))
        sum = logSum(sum, a[t - 1][s - 2]);
      a[t][s] = sum + y[t * c.classes + states[s]];
    }
  return a;
}

/// Log probabilities of all path suffixes that start in a state at a step, excluding that step.
Table backwards(const float *y, std::uint32_t steps, const std::vector<std::uint32_t> &states, const Ctc &c) {
  const std::size_t n = states.size();
  Table b(steps, std::vector<double>(n, never));
  for (std::size_t s = n - std::min<std::size_t>(2, n); s < n && steps > 0; ++s)
    b[steps - 1][s] = 0;
  for (std::uint32_t t = steps; t-- > 1;)
    for (std::size_t s = 0; s < n; ++s) {
      const auto after = [&](std::size_t next) { return b[t][next] + y[t * c.classes + states[next]]; };
      double sum = after(s);
      if (s + 1 < n)
        sum = logSum(sum, after(s + 1));
      if (s + 2 < n && mayJump(states, s + 2, c))
        sum = logSum(sum, after(s + 2));
      b[t - 1][s] = sum;
    }
  return b;
}

void writeGradient(const float *y, float *gradient, std::uint32_t steps, const std::vector<std::uint32_t> &states, const Table &a,
                   double total, const Ctc &c) {
  const Table b = backwards(y, steps, states, c);
  std::vector<double> occupied(c.classes);
  for (std::uint32_t t = 0; t < steps; ++t) {
    std::fill(occupied.begin(), occupied.end(), never);
    for (std::size_t s = 0; s < states.size(); ++s)
      occupied[states[s]] = logSum(occupied[states[s]], a[t][s] + b[t][s]);
    for (std::uint32_t k = 0; k < c.classes; ++k) {
      const double probability = c.softmaxGradient ? std::exp(double(y[t * c.classes + k])) : 0;
      gradient[t * c.classes + k] = float(probability - std::exp(occupied[k] - total));
    }
  }
}

void runLoss(const State &state, const Ctc &c) {
  const float *y = state.slots[0].as<float>();
  const std::uint32_t *labels = state.slots[1].as<std::uint32_t>(), *lengths = state.slots[2].as<std::uint32_t>();
  float *loss = state.slots[3].as<float>(), *gradient = state.slots[4].as<float>();
  const std::uint32_t steps = std::min(lengths[0], c.steps);
  const std::vector<std::uint32_t> states = withBlanks(labels, std::min(lengths[1], state.slots[1].count), c);
  const Table a = forwards(y, steps, states, c);
  double total = steps == 0 ? (states.size() == 1 ? 0 : never) : a.back().back();
  if (steps > 0 && states.size() > 1)
    total = logSum(total, a.back()[states.size() - 2]);
  const bool impossible = total == never;
  *loss = float(impossible && c.zeroInfinity ? 0 : -total);
  std::fill(gradient, gradient + state.slots[4].count, 0.f);
  if (state.slots[4].count == 0 || (impossible && c.zeroInfinity))
    return;
  if (impossible)
    std::fill(gradient, gradient + steps * c.classes, std::numeric_limits<float>::quiet_NaN());
  else
    writeGradient(y, gradient, steps, states, a, total, c);
}

/// Log probabilities of a prefix's paths that end with a blank, and of those that end with its last label.
struct Beam {
  double blank = never, label = never;
  double total() const { return logSum(blank, label); }
};
using Prefix = std::vector<std::uint32_t>;

/// The `most` likeliest prefixes, in order; equally likely ones are ordered by their labels.
std::vector<std::pair<Prefix, Beam>> likeliest(const std::map<Prefix, Beam> &beams, std::size_t most) {
  std::vector<std::pair<Prefix, Beam>> sorted(beams.begin(), beams.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto &x, const auto &y) { return x.second.total() > y.second.total(); });
  sorted.resize(std::min(most, sorted.size()));
  return sorted;
}

std::vector<std::pair<Prefix, Beam>> search(const float *y, std::uint32_t steps, const Ctc &c) {
  std::vector<std::pair<Prefix, Beam>> beams{{Prefix(), Beam{0, never}}};
  for (std::uint32_t t = 0; t < steps; ++t) {
    std::map<Prefix, Beam> next;
    for (const auto &[prefix, beam] : beams)
      for (std::uint32_t k = 0; k < c.classes; ++k) {
        const double p = y[t * c.classes + k];
        if (p == never)
          continue;
        if (k == c.blank) {
          next[prefix].blank = logSum(next[prefix].blank, beam.total() + p);
          continue;
        }
        const bool repeats = !prefix.empty() && prefix.back() == k;
        if (repeats)
          next[prefix].label = logSum(next[prefix].label, beam.label + p);
        const double before = repeats ? beam.blank : beam.total();
        if (before == never)
          continue;
        Prefix longer = prefix;
        longer.push_back(k);
        next[longer].label = logSum(next[longer].label, before + p);
      }
    beams = likeliest(next, c.beam);
  }
  return beams;
}

void runSearch(const State &state, const Ctc &c) {
  const std::uint32_t steps = std::min(*state.slots[1].as<std::uint32_t>(), c.steps);
  const auto beams = search(state.slots[0].as<float>(), steps, c);
  float *cost = state.slots[2].as<float>();
  std::uint32_t *lengths = state.slots[3].as<std::uint32_t>(), *labels = state.slots[4].as<std::uint32_t>();
  std::fill(labels, labels + state.slots[4].count, c.blank);
  for (std::uint32_t path = 0; path < c.paths; ++path) {
    const bool found = path < beams.size();
    cost[path] = float(found ? -beams[path].second.total() : -never);
    lengths[path] = found ? std::uint32_t(beams[path].first.size()) : 0;
    if (found)
      std::copy(beams[path].first.begin(), beams[path].first.end(), labels + std::size_t(path) * c.steps);
  }
}

void runCtc(const State &state) {
  const Ctc &c = *static_cast<const Ctc *>(state.shared);
  c.beam ? runSearch(state, c) : runLoss(state, c);
}

} // namespace

const BuiltinKind ctcKind{"popnn.ctc", &runCtc, &readShared<Ctc>};

namespace {

/// A separate vertex type for each combination of the data that its vertices share.
std::string typeName(const char *name, const Ctc &c) {
  std::string text = std::string("popnn::") + name + "<";
  for (const std::uint32_t n : {c.steps, c.classes, c.blank, c.beam, c.paths, unsigned(c.softmaxGradient), unsigned(c.zeroInfinity)})
    text += std::to_string(n) + ",";
  text.back() = '>';
  return text;
}

Tensor onTile(Graph &graph, Type type, const std::vector<std::size_t> &shape, unsigned dimension, const std::string &name) {
  const Tensor t = graph.addVariable(type, shape, name);
  for (std::size_t i = 0; i < shape[dimension]; ++i)
    graph.setTileMapping(t.slice(i, i + 1, dimension), unsigned(i % graph.getTarget().getNumTiles()));
  return t;
}

Tensor as(Graph &graph, const Tensor &t, Type type, poplar::program::Sequence &prog, const std::string &name) {
  return t.elementType() == type ? t : popops::cast(graph, t, type, prog, name);
}

/// Samples of [time, batch, classes], checked against the lengths of the other arguments.
void checkData(const Tensor &data, const Tensor &lengths, unsigned blank, const std::string &name) {
  if (data.rank() != 3 || (data.elementType() != poplar::FLOAT && data.elementType() != poplar::HALF))
    throw poputil::poplibs_error(name + ": data of type " + data.elementType().toString() + " and shape " + data.shapeToString() +
                                 ", not float or half of [time, batch, classes]");
  if (lengths.rank() != 1 || lengths.dim(0) != data.dim(1))
    throw poputil::poplibs_error(name + ": lengths of shape " + lengths.shapeToString() + " for a batch of " + std::to_string(data.dim(1)));
  if (blank >= data.dim(2))
    throw poputil::poplibs_error(name + ": the blank class " + std::to_string(blank) + " is none of the " + std::to_string(data.dim(2)) +
                                 " classes");
}

} // namespace

} // namespace poplibs

namespace popnn {

using namespace poplibs;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Sequence;

namespace {

bool flagOf(const OptionFlags &options, const std::string &name, bool value) {
  for (const auto &option : options)
    if (option.first == name)
      value = option.second == "true" || option.second == "1";
  return value;
}

void requireKnown(const OptionFlags &options, const std::vector<std::string> &known, const std::string &name) {
  for (const auto &option : options)
    if (std::find(known.begin(), known.end(), option.first) == known.end())
      throw poplar::invalid_option(name + " has no option '" + option.first + "'");
}

struct Labels {
  Tensor labels, lengths;
};

/// Losses [batch] and, if asked for, the gradient [time, batch, classes], in float.
std::pair<Tensor, Tensor> lossOf(Graph &graph, const Tensor &logProbs, const Labels &labels, const Tensor &dataLengths, Sequence &prog,
                                 unsigned blank, bool withGradient, const OptionFlags &options, const std::string &name) {
  requireLibrary(graph, "popnn");
  checkData(logProbs, dataLengths, blank, name);
  requireKnown(options, {"includeSoftmaxGradient", "zeroInfinity", "partialsType", "availableMemoryProportion"}, name);
  const std::size_t steps = logProbs.dim(0), batch = logProbs.dim(1), classes = logProbs.dim(2);
  if (labels.labels.rank() != 2 || labels.labels.dim(0) != batch || labels.lengths.rank() != 1 || labels.lengths.dim(0) != batch)
    throw poputil::poplibs_error(name + ": labels of shape " + labels.labels.shapeToString() + " with lengths of shape " +
                                 labels.lengths.shapeToString() + " for a batch of " + std::to_string(batch));
  const Ctc shared{std::uint32_t(steps), std::uint32_t(classes), blank, 0, 0, flagOf(options, "includeSoftmaxGradient", true),
                   flagOf(options, "zeroInfinity", false)};
  const std::string vertex =
      builtinType(graph, typeName("CTCLoss", shared),
                  {{"data", Direction::Input, poplar::FLOAT}, {"labels", Direction::Input, poplar::UNSIGNED_INT},
                   {"lengths", Direction::Input, poplar::UNSIGNED_INT}, {"loss", Direction::Output, poplar::FLOAT},
                   {"gradient", Direction::Output, poplar::FLOAT}},
                  ctcKind, shared, 2000);
  const Tensor data = as(graph, logProbs, poplar::FLOAT, prog, name + "/data");
  const Tensor wanted = as(graph, labels.labels, poplar::UNSIGNED_INT, prog, name + "/labels");
  const Tensor lengths = poplar::concat(as(graph, dataLengths, poplar::UNSIGNED_INT, prog, name + "/dataLengths").expand({1}),
                                        as(graph, labels.lengths, poplar::UNSIGNED_INT, prog, name + "/labelLengths").expand({1}), 1);
  const Tensor loss = onTile(graph, poplar::FLOAT, {batch}, 0, name + "/loss");
  const Tensor gradient = onTile(graph, poplar::FLOAT, {withGradient ? steps : 0, batch, classes}, 1, name + "/gradient");
  const poplar::ComputeSet computeSet = graph.addComputeSet(name);
  for (std::size_t i = 0; i < batch; ++i) {
    const poplar::VertexRef v = graph.addVertex(computeSet, vertex,
                                                {{"data", data.slice(i, i + 1, 1).flatten()}, {"labels", wanted[i]}, {"lengths", lengths[i]},
                                                 {"loss", loss.slice(i, i + 1)}, {"gradient", gradient.slice(i, i + 1, 1).flatten()}});
    graph.setTileMapping(v, unsigned(i % graph.getTarget().getNumTiles()));
    graph.setPerfEstimate(v, 100 + 20 * steps * (2 * wanted.dim(1) + 1) * (withGradient ? 2 : 1));
  }
  prog.add(poplar::program::Execute(computeSet));
  return {loss, gradient};
}

} // namespace

namespace ctc {

Plan plan(const Graph &, const Type &, const Type &, unsigned batchSize, unsigned maxTime, unsigned maxLabelLength, unsigned numClasses,
          const OptionFlags &) {
  return Plan(batchSize, maxTime, maxLabelLength, numClasses);
}
Tensor createDataInput(Graph &graph, const Type &type, const std::size_t batchSize, const std::size_t maxTime,
                       const std::size_t numClasses, const Plan &, const DebugContext &context) {
  return onTile(graph, type, {maxTime, batchSize, numClasses}, 1, contextName(context, "ctc") + "/data");
}
Tensor createLabelsInput(Graph &graph, const Type &type, const std::size_t batchSize, const std::size_t maxLabelLength, const Plan &,
                         const DebugContext &context) {
  return onTile(graph, type, {batchSize, maxLabelLength}, 0, contextName(context, "ctc") + "/labels");
}

std::pair<Tensor, Tensor> calcLossAndGradientLogProbabilities(Graph &graph, const Type &outType, const Tensor &logProbs,
                                                              const Tensor &labels, const Tensor &dataLengths, const Tensor &labelLengths,
                                                              Sequence &prog, const unsigned blankClass, const Plan &,
                                                              const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "ctcLoss");
  const auto found = lossOf(graph, logProbs, {labels, labelLengths}, dataLengths, prog, blankClass, true, options, name);
  return {as(graph, found.first, outType, prog, name), as(graph, found.second, outType, prog, name)};
}
std::pair<Tensor, Tensor> calcLossAndGradientLogits(Graph &graph, const Type &outType, const Tensor &logits, const Tensor &labels,
                                                    const Tensor &dataLengths, const Tensor &labelLengths, Sequence &prog,
                                                    const unsigned blankClass, const Plan &plan, const DebugContext &context,
                                                    const OptionFlags &options) {
  const Tensor data = as(graph, logits, poplar::FLOAT, prog, contextName(context, "ctcLoss") + "/logits");
  return calcLossAndGradientLogProbabilities(graph, outType, logSoftmax(graph, data, prog, context), labels, dataLengths, labelLengths, prog,
                                             blankClass, plan, context, options);
}
Tensor calcCTCLossLogProbabilities(Graph &graph, const Type &outType, const Tensor &logProbs, const Tensor &labels,
                                   const Tensor &dataLengths, const Tensor &labelLengths, Sequence &prog, const unsigned blankClass,
                                   const Plan &, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "ctcLoss");
  return as(graph, lossOf(graph, logProbs, {labels, labelLengths}, dataLengths, prog, blankClass, false, options, name).first, outType, prog, name);
}
Tensor calcCTCLossLogits(Graph &graph, const Type &outType, const Tensor &logits, const Tensor &labels, const Tensor &dataLengths,
                         const Tensor &labelLengths, Sequence &prog, const unsigned blankClass, const Plan &plan,
                         const DebugContext &context, const OptionFlags &options) {
  const Tensor data = as(graph, logits, poplar::FLOAT, prog, contextName(context, "ctcLoss") + "/logits");
  return calcCTCLossLogProbabilities(graph, outType, logSoftmax(graph, data, prog, context), labels, dataLengths, labelLengths, prog,
                                     blankClass, plan, context, options);
}

} // namespace ctc

namespace ctc_infer {

ctc::Plan plan(const Graph &, const Type &, unsigned batchSize, unsigned maxTime, unsigned numClasses, unsigned, const OptionFlags &) {
  return ctc::Plan(batchSize, maxTime, 0, numClasses);
}
Tensor createDataInput(Graph &graph, const Type &type, const std::size_t batchSize, const std::size_t maxTime,
                       const std::size_t numClasses, const ctc::Plan &plan, const DebugContext &context) {
  return ctc::createDataInput(graph, type, batchSize, maxTime, numClasses, plan, context);
}

std::tuple<Tensor, Tensor, Tensor> beamSearchDecoderLogProbabilities(Graph &graph, const Tensor &logProbs, const Tensor &dataLengths,
                                                                     Sequence &prog, unsigned blankClass, unsigned beamwidth,
                                                                     unsigned topPaths, const ctc::Plan &, const DebugContext &context,
                                                                     const OptionFlags &options) {
  requireLibrary(graph, "popnn");
  const std::string name = contextName(context, "ctcBeamSearch");
  checkData(logProbs, dataLengths, blankClass, name);
  requireKnown(options, {"partialsType", "availableMemoryProportion", "sortMethod"}, name);
  if (topPaths == 0 || topPaths > beamwidth)
    throw poputil::poplibs_error(name + ": " + std::to_string(topPaths) + " paths of a beam of " + std::to_string(beamwidth));
  const std::size_t steps = logProbs.dim(0), batch = logProbs.dim(1), classes = logProbs.dim(2);
  const Ctc shared{std::uint32_t(steps), std::uint32_t(classes), blankClass, beamwidth, topPaths, false, false};
  const std::string vertex =
      builtinType(graph, typeName("CTCBeamSearch", shared),
                  {{"data", Direction::Input, poplar::FLOAT}, {"length", Direction::Input, poplar::UNSIGNED_INT},
                   {"cost", Direction::Output, poplar::FLOAT}, {"lengths", Direction::Output, poplar::UNSIGNED_INT},
                   {"labels", Direction::Output, poplar::UNSIGNED_INT}},
                  ctcKind, shared, 3000);
  const Tensor data = as(graph, logProbs, poplar::FLOAT, prog, name + "/data");
  const Tensor given = as(graph, dataLengths, poplar::UNSIGNED_INT, prog, name + "/dataLengths");
  const Tensor cost = onTile(graph, poplar::FLOAT, {batch, topPaths}, 0, name + "/cost");
  const Tensor lengths = onTile(graph, poplar::UNSIGNED_INT, {batch, topPaths}, 0, name + "/lengths");
  const Tensor labels = onTile(graph, poplar::UNSIGNED_INT, {batch, topPaths, steps}, 0, name + "/labels");
  const poplar::ComputeSet computeSet = graph.addComputeSet(name);
  for (std::size_t i = 0; i < batch; ++i) {
    const poplar::VertexRef v = graph.addVertex(computeSet, vertex,
                                                {{"data", data.slice(i, i + 1, 1).flatten()}, {"length", given.slice(i, i + 1)},
                                                 {"cost", cost[i]}, {"lengths", lengths[i]}, {"labels", labels[i].flatten()}});
    graph.setTileMapping(v, unsigned(i % graph.getTarget().getNumTiles()));
    graph.setPerfEstimate(v, 100 + 60 * steps * beamwidth * classes);
  }
  prog.add(poplar::program::Execute(computeSet));
  return std::make_tuple(as(graph, cost, logProbs.elementType(), prog, name), lengths, labels);
}

std::tuple<Tensor, Tensor, Tensor> beamSearchDecoderLogits(Graph &graph, const Tensor &logits, const Tensor &dataLengths, Sequence &prog,
                                                           unsigned blankClass, unsigned beamwidth, unsigned topPaths,
                                                           const ctc::Plan &plan, const DebugContext &context, const OptionFlags &options) {
  return beamSearchDecoderLogProbabilities(graph, logSoftmax(graph, logits, prog, context), dataLengths, prog, blankClass, beamwidth,
                                           topPaths, plan, context, options);
}

} // namespace ctc_infer
} // namespace popnn
