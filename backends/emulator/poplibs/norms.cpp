// poplin/Norms.hpp and the normalisations of popnn: reductions and expressions over [batch, channels, field...].
#include <popnn/BatchNorm.hpp>
#include <popnn/GroupNorm.hpp>
#include <popnn/Norms.hpp>

#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace poplin {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::program::Sequence;
using Pair = std::pair<Tensor, Tensor>;

namespace {

void check(const Tensor &acts, const std::string &name) {
  if (acts.rank() < 2 || acts.numElements() == 0 || !isReal(acts.elementType()))
    throw poputil::poplibs_error(name + ": activations of type " + acts.elementType().toString() + " and shape " + acts.shapeToString() +
                                 "; they must be float or half, of two dimensions or more");
}

/// One value per channel, broadcast to every element of the channel.
Tensor overField(const Tensor &acts, const Tensor &ofChannels, const std::string &name) {
  if (ofChannels.numElements() != acts.dim(1))
    throw poputil::poplibs_error(name + ": " + std::to_string(ofChannels.numElements()) + " numbers for " + std::to_string(acts.dim(1)) +
                                 " channels");
  std::vector<std::size_t> shape(acts.rank() - 1, 1);
  shape[0] = acts.dim(1);
  return ofChannels.reshape(shape);
}

/// All dimensions except that of the channels.
std::vector<std::size_t> otherDims(const Tensor &acts) {
  std::vector<std::size_t> dims{0};
  for (std::size_t d = 2; d < acts.rank(); ++d)
    dims.push_back(d);
  return dims;
}

Tensor constant(Graph &graph, float value, const std::string &name) {
  const Tensor t = graph.addConstant(poplar::FLOAT, {}, value, name);
  graph.setTileMapping(t, 0);
  return t;
}

Tensor reduced(Graph &graph, const Tensor &t, const Type &type, popops::Operation op, float scale, Sequence &prog,
               const std::string &name) {
  return popops::reduce(graph, t, type, otherDims(t), popops::ReduceParams(op, false, constant(graph, scale, name + "/scale")), prog, name);
}

Tensor map(Graph &graph, const Expr &expression, const std::vector<Tensor> &tensors, Sequence &prog, const std::string &name) {
  return popops::map(graph, expression, tensors, prog, name);
}

/// Replicas that share statistics; 1 if one replica has enough samples.
unsigned replicasOf(const Tensor &acts, const DistributedNormReduceCallback &callback, std::size_t normSize, const std::string &name) {
  if (!callback || normSize <= acts.dim(0))
    return 1;
  if (normSize % acts.dim(0))
    throw poputil::poplibs_error(name + ": statistics of " + std::to_string(normSize) + " samples, of which a replica has " +
                                 std::to_string(acts.dim(0)));
  return unsigned(normSize / acts.dim(0));
}

Type partials(const Tensor &acts, const Type &type) { return type.size() < acts.elementType().size() ? acts.elementType() : type; }

std::vector<Tensor> summed(Graph &graph, const std::vector<Tensor> &tensors, unsigned replicas,
                           const DistributedNormReduceCallback &callback, Sequence &prog, const std::string &name) {
  return replicas > 1 ? callback(graph, tensors, prog, replicas, name, {}) : tensors;
}

void useLibraries(Graph &graph) {
  addLibrary(graph, "popops");
  addLibrary(graph, "poplin");
}

} // namespace

Tensor createNormGamma(Graph &graph, const Tensor &acts, const Type &type, const DebugContext &context) {
  check(acts, contextName(context, "gamma"));
  const Tensor t = graph.addVariable(type, {acts.dim(1)}, contextName(context, "gamma"));
  poputil::mapTensorLinearly(graph, t);
  return t;
}
Tensor createNormGamma(Graph &graph, const Tensor &acts, const DebugContext &context) {
  return createNormGamma(graph, acts, acts.elementType(), context);
}
Tensor createNormBeta(Graph &graph, const Tensor &acts, const Type &type, const DebugContext &context) {
  return createNormGamma(graph, acts, type, contextName(context, "beta"));
}
Tensor createNormBeta(Graph &graph, const Tensor &acts, const DebugContext &context) {
  return createNormBeta(graph, acts, acts.elementType(), context);
}
Pair createNormParams(Graph &graph, const Tensor &acts, const DebugContext &context) {
  const std::string name = contextName(context, "norm");
  return {createNormGamma(graph, acts, name + "/gamma"), createNormBeta(graph, acts, name + "/beta")};
}

Pair distributedNormStatistics(Graph &graph, const Tensor &acts, float eps, Sequence &prog, bool unbiased,
                               DistributedNormReduceCallback callback, unsigned normSize, bool stableAlgo, const Type &partialsType,
                               const DebugContext &context) {
  const std::string name = contextName(context, "normStatistics");
  check(acts, name);
  useLibraries(graph);
  const unsigned replicas = replicasOf(acts, callback, normSize, name);
  const double n = double(acts.numElements() / acts.dim(1)) * replicas;
  const Type type = acts.elementType(), partial = partials(acts, partialsType);
  const float scale = float(1 / n);
  Tensor mean = reduced(graph, acts, type, popops::Operation::ADD, scale, prog, name + "/mean"), power;
  if (stableAlgo) {
    mean = summed(graph, {mean}, replicas, callback, prog, name).at(0);
    const Tensor rest = map(graph, Sub(_1, _2), {acts, overField(acts, mean, name)}, prog, name + "/rest");
    power = summed(graph, {reduced(graph, rest, partial, popops::Operation::SQUARE_ADD, scale, prog, name + "/power")}, replicas, callback,
                   prog, name)
                .at(0);
  } else {
    const Tensor square = reduced(graph, acts, partial, popops::Operation::SQUARE_ADD, scale, prog, name + "/power");
    const std::vector<Tensor> both = summed(graph, {mean, square}, replicas, callback, prog, name);
    mean = both.at(0);
    power = both.at(1);
  }
  const Any p = Cast(_2, poplar::FLOAT), m = Cast(_1, poplar::FLOAT);
  const Any variance = stableAlgo ? p : Any(Max(Sub(p, Square(m)), Const(0.f)));
  const Any deviation = Rsqrt(Add(Mul(variance, Const(unbiased && n > 1 ? float(n / (n - 1)) : 1.f)), Const(eps)));
  return {mean, map(graph, Cast(deviation, type), {mean, power}, prog, name + "/invStdDev")};
}

Pair normStatistics(Graph &graph, const Tensor &acts, float eps, Sequence &prog, bool unbiased, bool stableAlgo, const Type &partialsType,
                    const DebugContext &context) {
  return distributedNormStatistics(graph, acts, eps, prog, unbiased, nullptr, 0, stableAlgo, partialsType, context);
}

Tensor normWhiten(Graph &graph, const Tensor &acts, const Tensor &mean, const Tensor &invStdDev, Sequence &prog,
                  const DebugContext &context) {
  const std::string name = contextName(context, "normWhiten");
  check(acts, name);
  useLibraries(graph);
  return map(graph, Mul(Sub(_1, _2), _3), {acts, overField(acts, mean, name), overField(acts, invStdDev, name)}, prog, name);
}

Tensor normalise(Graph &graph, const Tensor &whitened, const Tensor &gamma, const Tensor &beta, Sequence &prog,
                 const DebugContext &context) {
  const std::string name = contextName(context, "normalise");
  check(whitened, name);
  useLibraries(graph);
  const Type type = whitened.elementType();
  return map(graph, Add(Mul(_1, Cast(_2, type)), Cast(_3, type)),
             {whitened, overField(whitened, gamma, name), overField(whitened, beta, name)}, prog, name);
}

Pair normParamGradients(Graph &graph, const Tensor &whitened, const Tensor &gradsIn, Sequence &prog, const Type &,
                        const DebugContext &context) {
  const std::string name = contextName(context, "normParamGradients");
  check(whitened, name);
  useLibraries(graph);
  const Tensor product = map(graph, Mul(_1, _2), {whitened, gradsIn}, prog, name + "/product");
  return {reduced(graph, product, whitened.elementType(), popops::Operation::ADD, 1, prog, name + "/gamma"),
          reduced(graph, gradsIn, whitened.elementType(), popops::Operation::ADD, 1, prog, name + "/beta")};
}

Tensor normGradients(Graph &graph, const Tensor &gradsIn, const Tensor &gamma, Sequence &prog, const DebugContext &context) {
  const std::string name = contextName(context, "normGradients");
  check(gradsIn, name);
  useLibraries(graph);
  return map(graph, Mul(_1, Cast(_2, gradsIn.elementType())), {gradsIn, overField(gradsIn, gamma, name)}, prog, name);
}

Tensor distributedNormStatisticsGradients(Graph &graph, const Tensor &whitened, const Tensor &gradsIn, const Tensor &invStdDev,
                                          Sequence &prog, DistributedNormReduceCallback callback, unsigned normSize, const Type &,
                                          const DebugContext &context) {
  const std::string name = contextName(context, "normStatisticsGradients");
  check(whitened, name);
  useLibraries(graph);
  const unsigned replicas = replicasOf(whitened, callback, normSize, name);
  const float scale = float(1 / (double(whitened.numElements() / whitened.dim(1)) * replicas));
  const Tensor product = map(graph, Mul(_1, _2), {whitened, gradsIn}, prog, name + "/product");
  const Type type = whitened.elementType();
  const std::vector<Tensor> means = summed(graph,
                                           {reduced(graph, product, type, popops::Operation::ADD, scale, prog, name + "/variance"),
                                            reduced(graph, gradsIn, type, popops::Operation::ADD, scale, prog, name + "/mean")},
                                           replicas, callback, prog, name);
  const auto of = [&](const Tensor &t) { return overField(whitened, t, name); };
  return map(graph, Mul(_5, Sub(Sub(_1, _4), Mul(_2, _3))), {gradsIn, whitened, of(means.at(0)), of(means.at(1)), of(invStdDev)}, prog,
             name);
}

Tensor normStatisticsGradients(Graph &graph, const Tensor &whitened, const Tensor &gradsIn, const Tensor &invStdDev, Sequence &prog,
                               const Type &partialsType, const DebugContext &context) {
  return distributedNormStatisticsGradients(graph, whitened, gradsIn, invStdDev, prog, nullptr, 0, partialsType, context);
}

} // namespace poplin

namespace popnn {

using namespace poplibs;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Sequence;
using Pair = std::pair<Tensor, Tensor>;

std::uint64_t getNormFwdFlops(std::size_t statisticsSize, std::size_t numActsElements, bool computeStats) {
  return (computeStats ? 3 * numActsElements + 7 * statisticsSize : 0) + 4 * numActsElements;
}
std::uint64_t getNormBwdFlops(std::size_t statisticsSize, std::size_t numActsElements) { return 8 * numActsElements + 2 * statisticsSize; }
std::uint64_t getNormWuFlops(std::size_t paramsSize, std::size_t numActsElements) { return 3 * numActsElements + 2 * paramsSize; }

namespace {

void requireNoOptions(const OptionFlags &options, const std::string &name) {
  for (const auto &option : options)
    throw poplar::invalid_option(name + ": no option '" + option.first + "'");
}

template <class Scale>
void update(Graph &graph, const Tensor &delta, const Scale &scale, const Tensor &parameter, Sequence &prog, const std::string &name) {
  addLibrary(graph, "popops");
  if constexpr (std::is_same_v<Scale, float>)
    popops::mapInPlace(graph, Add(_1, Mul(Cast(_2, parameter.elementType()), Const(scale))), {parameter, delta}, prog, name);
  else
    popops::mapInPlace(graph, Add(_1, Mul(Cast(_2, parameter.elementType()), Cast(_3, parameter.elementType()))), {parameter, delta, scale},
                       prog, name);
}

} // namespace

namespace bn {

Pair batchNormStatistics(Graph &graph, const Tensor acts, float eps, Sequence &prog, bool unbiased, bool stableAlgo,
                         const Type &partialsType, const DebugContext &context, const OptionFlags &options) {
  requireNoOptions(options, contextName(context, "batchNorm"));
  return poplin::normStatistics(graph, acts, eps, prog, unbiased, stableAlgo, partialsType, context);
}
Pair distributedBatchNormStatistics(Graph &graph, const Tensor acts, float eps, Sequence &prog, bool unbiased,
                                    poplin::DistributedNormReduceCallback callback, unsigned normBatchSize, bool stableAlgo,
                                    const Type &partialsType, const DebugContext &context, const OptionFlags &options) {
  requireNoOptions(options, contextName(context, "batchNorm"));
  return poplin::distributedNormStatistics(graph, acts, eps, prog, unbiased, callback, normBatchSize, stableAlgo, partialsType, context);
}
Tensor batchNormWhiten(Graph &graph, const Tensor &acts, const Tensor &mean, const Tensor &invStdDev, Sequence &prog,
                       const DebugContext &context, const OptionFlags &options) {
  requireNoOptions(options, contextName(context, "batchNorm"));
  return poplin::normWhiten(graph, acts, mean, invStdDev, prog, context);
}
Pair batchNormalise(Graph &graph, const Tensor &acts, const Tensor &gamma, const Tensor &beta, const Tensor &mean, const Tensor &invStdDev,
                    Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  const Tensor whitened = batchNormWhiten(graph, acts, mean, invStdDev, prog, context, options);
  return {poplin::normalise(graph, whitened, gamma, beta, prog, context), whitened};
}
Tensor batchNormalise(Graph &graph, const Tensor &acts, const Tensor &multiplicand, const Tensor &addend, Sequence &prog,
                      const DebugContext &context, const OptionFlags &options) {
  requireNoOptions(options, contextName(context, "batchNorm"));
  return poplin::normalise(graph, acts, multiplicand, addend, prog, context);
}
Pair batchNormParamGradients(Graph &graph, const Tensor &whitened, const Tensor &gradsIn, Sequence &prog, const Type &partialsType,
                             const DebugContext &context, const OptionFlags &options) {
  requireNoOptions(options, contextName(context, "batchNorm"));
  return poplin::normParamGradients(graph, whitened, gradsIn, prog, partialsType, context);
}
Pair batchNormParamGradients(Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean, const Tensor &invStdDev,
                             Sequence &prog, const Type &partialsType, const DebugContext &context, const OptionFlags &options) {
  return batchNormParamGradients(graph, batchNormWhiten(graph, acts, mean, invStdDev, prog, context, options), gradsIn, prog, partialsType,
                                 context, options);
}
Tensor distributedBatchNormGradients(Graph &graph, const Tensor &whitened, const Tensor &gradsIn, const Tensor &invStdDev,
                                     const Tensor &gamma, Sequence &prog, poplin::DistributedNormReduceCallback callback,
                                     unsigned normBatchSize, const Type &partialsType, const DebugContext &context,
                                     const OptionFlags &options) {
  requireNoOptions(options, contextName(context, "batchNorm"));
  const Tensor scaled = poplin::normGradients(graph, gradsIn, gamma, prog, context);
  return poplin::distributedNormStatisticsGradients(graph, whitened, scaled, invStdDev, prog, callback, normBatchSize, partialsType,
                                                    context);
}
Tensor distributedBatchNormGradients(Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean, const Tensor &invStdDev,
                                     const Tensor &gamma, Sequence &prog, poplin::DistributedNormReduceCallback callback,
                                     unsigned normBatchSize, const Type &partialsType, const DebugContext &context,
                                     const OptionFlags &options) {
  return distributedBatchNormGradients(graph, batchNormWhiten(graph, acts, mean, invStdDev, prog, context, options), gradsIn, invStdDev,
                                       gamma, prog, callback, normBatchSize, partialsType, context, options);
}
Tensor batchNormGradients(Graph &graph, const Tensor &whitened, const Tensor &gradsIn, const Tensor &invStdDev, const Tensor &gamma,
                          Sequence &prog, const Type &partialsType, const DebugContext &context, const OptionFlags &options) {
  return distributedBatchNormGradients(graph, whitened, gradsIn, invStdDev, gamma, prog, nullptr, 0, partialsType, context, options);
}
Tensor batchNormGradients(Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean, const Tensor &invStdDev,
                          const Tensor &gamma, Sequence &prog, const Type &partialsType, const DebugContext &context,
                          const OptionFlags &options) {
  return distributedBatchNormGradients(graph, acts, gradsIn, mean, invStdDev, gamma, prog, nullptr, 0, partialsType, context, options);
}
void batchNormParamUpdate(Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, float scale, Tensor &gamma, Tensor &beta,
                          Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "normParamUpdate");
  requireNoOptions(options, name);
  update(graph, gammaDelta, scale, gamma, prog, name);
  update(graph, betaDelta, scale, beta, prog, name);
}
void batchNormParamUpdate(Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, const Tensor &scale, Tensor &gamma, Tensor &beta,
                          Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "normParamUpdate");
  requireNoOptions(options, name);
  update(graph, gammaDelta, scale, gamma, prog, name);
  update(graph, betaDelta, scale, beta, prog, name);
}

} // namespace bn

namespace gn {

namespace {

bool isStrided(const OptionFlags &options, const std::string &name) {
  bool strided = false;
  for (const auto &option : options) {
    if (option.first != "groupNormStridedChannelGrouping")
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
    if (option.second != "true" && option.second != "false")
      throw poplar::invalid_option(name + ": option '" + option.first + "' is true or false, not '" + option.second + "'");
    strided = option.second == "true";
  }
  return strided;
}

/// How channels are grouped: [batch, channels, ...] as [channels of a group, groups of all samples, ...], so that each group is a channel.
struct Grouping {
  std::size_t batch, channels, groups;
  bool strided;

  Grouping(const Tensor &acts, std::size_t numGroups, const OptionFlags &options, const std::string &name)
      : batch(acts.rank() < 2 ? 0 : acts.dim(0)), channels(acts.rank() < 2 ? 0 : acts.dim(1)), groups(numGroups),
        strided(isStrided(options, name)) {
    if (groups == 0 || batch == 0 || channels == 0 || channels % groups)
      throw poputil::poplibs_error(name + ": activations of shape " + acts.shapeToString() + " in " + std::to_string(groups) +
                                   " groups of channels");
  }
  Tensor grouped(const Tensor &t) const {
    const Tensor apart =
        strided ? t.reshapePartial(1, 2, {channels / groups, groups}).dimRoll(2, 1) : t.reshapePartial(1, 2, {groups, channels / groups});
    return apart.reshapePartial(0, 2, {batch * groups}).dimRoll(1, 0);
  }
  Tensor ungrouped(const Tensor &t) const {
    const Tensor apart = t.dimRoll(0, 1).reshapePartial(0, 1, {batch, groups});
    return (strided ? apart.dimRoll(2, 1) : apart).reshapePartial(1, 3, {channels});
  }
};

Grouping groupingOf(const Tensor &acts, const Tensor &statistics, const OptionFlags &options, const std::string &name) {
  const std::size_t batch = acts.rank() < 2 ? 1 : acts.dim(0), n = statistics.numElements();
  if (batch == 0 || n % batch)
    throw poputil::poplibs_error(name + ": " + std::to_string(n) + " means of the groups of " + std::to_string(batch) + " samples");
  return Grouping(acts, n / batch, options, name);
}

} // namespace

Pair groupNormStatistics(Graph &graph, const Tensor acts, float eps, Sequence &prog, unsigned numGroups, bool unbiased, bool stableAlgo,
                         const Type &partialsType, const DebugContext &context, const OptionFlags &options) {
  const Grouping grouping(acts, numGroups, options, contextName(context, "groupNorm"));
  return poplin::normStatistics(graph, grouping.grouped(acts), eps, prog, unbiased, stableAlgo, partialsType, context);
}
Tensor groupNormWhiten(Graph &graph, const Tensor &acts, const Tensor &mean, const Tensor &invStdDev, Sequence &prog,
                       const DebugContext &context, const OptionFlags &options) {
  const Grouping grouping = groupingOf(acts, mean, options, contextName(context, "groupNorm"));
  return grouping.ungrouped(poplin::normWhiten(graph, grouping.grouped(acts), mean, invStdDev, prog, context));
}
Pair groupNormalise(Graph &graph, const Tensor &acts, const Tensor &gamma, const Tensor &beta, const Tensor &mean, const Tensor &invStdDev,
                    Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  const Tensor whitened = groupNormWhiten(graph, acts, mean, invStdDev, prog, context, options);
  return {poplin::normalise(graph, whitened, gamma, beta, prog, context), whitened};
}
Pair groupNormParamGradients(Graph &graph, const Tensor &whitened, const Tensor &gradsIn, Sequence &prog, const Type &partialsType,
                             const DebugContext &context, const OptionFlags &options) {
  isStrided(options, contextName(context, "groupNorm"));
  return poplin::normParamGradients(graph, whitened, gradsIn, prog, partialsType, context);
}
Pair groupNormParamGradients(Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean, const Tensor &invStdDev,
                             Sequence &prog, const Type &partialsType, const DebugContext &context, const OptionFlags &options) {
  return groupNormParamGradients(graph, groupNormWhiten(graph, acts, mean, invStdDev, prog, context, options), gradsIn, prog, partialsType,
                                 context, options);
}
Tensor groupNormGradients(Graph &graph, const Tensor &whitened, const Tensor &gradsIn, const Tensor &invStdDev, const Tensor &gamma,
                          Sequence &prog, const Type &partialsType, const DebugContext &context, const OptionFlags &options) {
  const Grouping grouping = groupingOf(whitened, invStdDev, options, contextName(context, "groupNorm"));
  const Tensor scaled = poplin::normGradients(graph, gradsIn, gamma, prog, context);
  return grouping.ungrouped(
      poplin::normStatisticsGradients(graph, grouping.grouped(whitened), grouping.grouped(scaled), invStdDev, prog, partialsType, context));
}
Tensor groupNormGradients(Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean, const Tensor &invStdDev,
                          const Tensor &gamma, Sequence &prog, const Type &partialsType, const DebugContext &context,
                          const OptionFlags &options) {
  return groupNormGradients(graph, groupNormWhiten(graph, acts, mean, invStdDev, prog, context, options), gradsIn, invStdDev, gamma, prog,
                            partialsType, context, options);
}
void groupNormParamUpdate(Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, float scale, Tensor &gamma, Tensor &beta,
                          Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  isStrided(options, contextName(context, "groupNorm"));
  bn::batchNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, context);
}
void groupNormParamUpdate(Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, const Tensor &scale, Tensor &gamma, Tensor &beta,
                          Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  isStrided(options, contextName(context, "groupNorm"));
  bn::batchNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, context);
}

} // namespace gn
} // namespace popnn
