// Layers and sparse products on numbers that the test sends: each input is read from stdin, each result is printed by its name.
#include "numbers.hpp"

#include <popnn/BatchNorm.hpp>
#include <popnn/CTCInference.hpp>
#include <popnn/CTCLoss.hpp>
#include <popnn/GroupNorm.hpp>
#include <popnn/Gru.hpp>
#include <popnn/InstanceNorm.hpp>
#include <popnn/LayerNorm.hpp>
#include <popnn/Lstm.hpp>
#include <popnn/Norms.hpp>
#include <popnn/Pooling.hpp>
#include <popops/ElementWise.hpp>
#include <popsparse/FullyConnected.hpp>
#include <popsparse/MatMul.hpp>
#include <popsparse/SparsePartitioner.hpp>
#include <popsparse/experimental/BlockSparseMatMul.hpp>

namespace {

void lstm() {
  World w;
  const std::size_t steps = number(), batch = number(), in = number(), out = number(), full = number(), last = number();
  const bool separate = number();
  popnn::lstm::LstmParams params(FLOAT, batch, steps, {in, out}, number() ? popnn::NonLinearityType::RELU : popnn::NonLinearityType::TANH);
  params.outputFullSequence = full;
  params.cellOrder.clear();
  for (unsigned unit : numbers<unsigned>())
    params.cellOrder.push_back(BasicLstmCellUnit(unit));
  const popnn::lstm::LstmState init = popnn::lstm::createInitialState(w.graph, params, "init");
  const popnn::lstm::LstmWeights weights = popnn::lstm::createWeights(w.graph, params, "weights");
  const Tensor x = popnn::lstm::createInput(w.graph, params, "x");
  for (const Tensor &t : {x, init.output, init.cellState, weights.inputWeights, weights.outputWeights, weights.biases})
    w.into(t);
  Tensor kept, dx;
  const auto [y, cell] = popnn::lstm::lstmFwd(w.graph, params, init, x, weights, &kept, w.prog, "fwd", {{"inferenceOnly", "false"}});
  w.show("y", y);
  w.show("cell", cell);
  const Tensor dy = w.input(y.shape());
  popnn::lstm::LstmState dLast;
  if (last)
    dLast = {w.input({batch, out}), w.input({batch, out})};
  popnn::lstm::LstmWeights d;
  popnn::lstm::LstmState dInit;
  if (separate) {
    Tensor between;
    dInit = popnn::lstm::lstmBwd(w.graph, params, w.prog, init, kept, weights, x, y, dy, last ? &dLast : nullptr, &dx, &between, "bwd");
    d = popnn::lstm::lstmWU(w.graph, params, w.prog, init, kept, between, weights, x, y, "wu");
  } else {
    dInit = popnn::lstm::lstmBwdWithWU(w.graph, params, w.prog, init, kept, weights, x, y, dy, last ? &dLast : nullptr, &dx, d, "bwd");
  }
  w.show("dx", dx);
  w.show("dh", dInit.output);
  w.show("dc", dInit.cellState);
  w.show("dW", d.inputWeights);
  w.show("dU", d.outputWeights);
  w.show("db", d.biases);
  w.run();
}

/// A cell of the program's own: two states, inputs of two types, and everything that a step can read and write.
void recurrence() {
  using namespace popops::expr;
  World w;
  const std::size_t steps = number(), batch = number(), size = number(), backwards = number(), shards = number();
  const popnn::rnn::RnnParams params(FLOAT, batch, steps, {size, size});
  const Tensor x = w.input({steps, batch, size}), interim = w.input({2 * steps, batch, size});
  const Tensor sum = w.input({1, batch, size}), scale = w.input({1, batch, size});
  const Tensor states = popnn::rnn::createOutputTensor(w.graph, params, 1), made = popnn::rnn::createOutputTensor(w.graph, params, 1);
  const Tensor out = popnn::rnn::createOutputTensor(w.graph, params, 2, 1);
  Tensor kept = popnn::rnn::createOutputTensor(w.graph, params, 1);
  const Tensor offset = w.graph.addVariable(FLOAT, {}, "offset");
  w.graph.setTileMapping(offset, 0);
  const auto body = [&](poplar::Graph &graph, const popnn::rnn::TimeStepState &time, const popnn::rnn::RnnBatchwiseFlags &flags,
                        std::vector<Tensor> &state, const popnn::rnn::RnnSlice &slice, std::vector<Tensor> &created, Sequence *first,
                        const poplar::DebugNameAndId &name) {
    if (flags.valid() || slice.inputs[0].rank() != 2 || slice.interimIn.dim(0) != 2 || slice.outputs[0].shape() != Shape{2, batch, size})
      std::cerr << "shapes of a step\n";
    popops::mapInPlace(graph, Cast(Const(3), FLOAT), {offset}, *first, {name});
    Sequence step;
    const Tensor index = popops::map(graph, Cast(Add(_1, _2), FLOAT), {time.begin, time.counter}, step, {name});
    popops::mapInPlace(graph, Add(Mul(_1, _2), Add(_3, _4)), {state[0], state[1], slice.inputs[0], index.reshape({1, 1, 1})}, step, {name});
    popops::mapInPlace(graph, Add(_1, _2), {state[1], slice.interimIn[1]}, step, {name});
    step.add(poplar::program::Copy(state[0][0], slice.outputs[0][0]));
    step.add(poplar::program::Copy(slice.interimIn[0], slice.outputs[0][1]));
    step.add(poplar::program::Copy(state[1][0], slice.interimOut));
    created[0] = popops::map(graph, Mul(_1, _2), {slice.inputs[0], offset}, step, {name});
    return step;
  };
  poplar::OptionFlags options{{"codeReuse", "true"}};
  const std::vector<Tensor> last = popnn::rnn::Rnn(w.graph, params, backwards, {sum, scale}, {states, 0}, {x}, &interim, &kept, {out}, {made},
                                                   w.prog, body, unsigned(shards), options, "own");
  w.show("sum", last[0]);
  w.show("scale", last[1]);
  w.show("states", states);
  w.show("out", out);
  w.show("kept", kept);
  w.show("made", made);
  w.run();
}

/// With attention where the first argument says so.
void gru() {
  World w;
  const bool attends = number(), separate = number();
  const std::size_t steps = number(), batch = number(), in = number(), out = number(), full = number(), after = number();
  popnn::gru::GruParams params(FLOAT, batch, steps, {in, out});
  params.outputFullSequence = full;
  params.resetAfter = after;
  params.cellOrder.clear();
  for (unsigned unit : numbers<unsigned>())
    params.cellOrder.push_back(BasicGruCellUnit(unit));
  const Tensor init = popnn::gru::createInitialState(w.graph, params, "init", {}, nullptr);
  const popnn::gru::GruWeights weights = popnn::gru::createWeights(w.graph, params, "weights");
  const Tensor x = popnn::gru::createInput(w.graph, params, "x");
  for (const Tensor &t : {x, init, weights.inputWeights, weights.outputWeights, weights.biases})
    w.into(t);
  Tensor kept, dx, a, da;
  if (attends)
    a = w.input({batch, steps});
  const Tensor y = attends ? popnn::gru::auGruFwd(w.graph, params, init, x, weights, &kept, a, w.prog, "fwd")
                           : popnn::gru::gruFwd(w.graph, params, init, x, weights, &kept, w.prog, "fwd");
  w.show("y", y);
  const Tensor dy = w.input(y.shape());
  popnn::gru::GruWeights d;
  using namespace popnn::gru;
  Tensor dh, between;
  if (attends && separate) {
    dh = auGruBwd(w.graph, params, w.prog, init, kept, weights, x, y, dy, &dx, &between, a, &da, "bwd");
    d = auGruWU(w.graph, params, w.prog, init, kept, between, weights, x, y, "wu");
  } else if (attends) {
    dh = auGruBwdWithWU(w.graph, params, w.prog, init, kept, weights, x, y, dy, &dx, d, a, &da, "bwd", {}, nullptr);
  } else if (separate) {
    dh = gruBwd(w.graph, params, w.prog, init, kept, weights, x, y, dy, &dx, &between, "bwd");
    d = gruWU(w.graph, params, w.prog, init, kept, between, weights, x, y, "wu");
  } else {
    dh = gruBwdWithWU(w.graph, params, w.prog, init, kept, weights, x, y, dy, &dx, d, "bwd", {}, nullptr);
  }
  w.show("dh", dh);
  if (attends)
    w.show("da", da);
  w.show("dx", dx);
  w.show("dW", d.inputWeights);
  w.show("dU", d.outputWeights);
  w.show("db", d.biases);
  w.run();
}

/// Unsigned integers that the test sends as floats.
Tensor counts(World &w, const Shape &shape) { return popops::cast(w.graph, w.input(shape), UNSIGNED_INT, w.prog); }

void ctcLoss() {
  World w(chosenType());
  const std::size_t steps = number(), batch = number(), classes = number(), most = number(), blank = number();
  const bool logits = number(), softmax = number(), zero = number();
  const popnn::ctc::Plan plan = popnn::ctc::plan(w.graph, w.type, w.type, batch, steps, most, classes);
  const Tensor data = popnn::ctc::createDataInput(w.graph, w.type, batch, steps, classes, plan, "data");
  const Tensor labels = popnn::ctc::createLabelsInput(w.graph, UNSIGNED_SHORT, batch, most, plan, "labels");
  w.into(data);
  w.prog.add(Copy(popops::cast(w.graph, w.input(labels.shape()), UNSIGNED_SHORT, w.prog), labels));
  const Tensor lengths = counts(w, {batch}), labelLengths = counts(w, {batch});
  const OptionFlags options{{"includeSoftmaxGradient", softmax ? "true" : "false"}, {"zeroInfinity", zero ? "true" : "false"}};
  const auto [loss, gradient] =
      logits ? popnn::ctc::calcLossAndGradientLogits(w.graph, w.type, data, labels, lengths, labelLengths, w.prog, blank, plan, "ctc", options)
             : popnn::ctc::calcLossAndGradientLogProbabilities(w.graph, w.type, data, labels, lengths, labelLengths, w.prog, blank, plan, "ctc",
                                                               options);
  const Tensor alone =
      logits ? popnn::ctc::calcCTCLossLogits(w.graph, w.type, data, labels, lengths, labelLengths, w.prog, blank, plan, "loss", options)
             : popnn::ctc::calcCTCLossLogProbabilities(w.graph, w.type, data, labels, lengths, labelLengths, w.prog, blank, plan, "loss", options);
  w.show("loss", loss);
  w.show("alone", alone);
  w.show("gradient", gradient);
  w.run();
}

void beamSearch() {
  World w;
  const std::size_t steps = number(), batch = number(), classes = number(), blank = number(), width = number(), paths = number();
  const popnn::ctc::Plan plan = popnn::ctc_infer::plan(w.graph, FLOAT, batch, steps, classes, width);
  const Tensor data = popnn::ctc_infer::createDataInput(w.graph, FLOAT, batch, steps, classes, plan, "data");
  w.into(data);
  const Tensor lengths = counts(w, {batch});
  const auto [costs, labelLengths, labels] =
      popnn::ctc_infer::beamSearchDecoderLogits(w.graph, data, lengths, w.prog, blank, width, paths, plan, "beam");
  w.show("costs", costs);
  w.show("lengths", popops::cast(w.graph, labelLengths, FLOAT, w.prog));
  w.show("labels", popops::cast(w.graph, labels, FLOAT, w.prog));
  w.run();
}

void pooling() {
  World w(chosenType());
  const auto kind = popnn::PoolingType(number());
  const std::size_t batch = number(), channels = number();
  const bool scaled = number();
  const auto field = numbers(), kernel = numbers();
  const auto stride = numbers<unsigned>();
  const auto lower = numbers<int>(), upper = numbers<int>();
  const popnn::pooling::PoolParams params(kind, field, kernel, stride, lower, upper, channels, batch, w.type);
  Shape shape{batch, channels};
  shape.insert(shape.end(), field.begin(), field.end());
  const Tensor x = w.input(shape), y = popnn::pooling::pool(w.graph, params, x, w.prog);
  w.show("y", y);
  w.show("dx", popnn::pooling::poolInputGradient(w.graph, params, x, y, w.input(y.shape()), scaled, w.prog));
  w.run();
}

template <class Statistics, class Normalise, class Gradients, class ParamGradients>
void norm(World &w, const Shape &shape, Statistics statistics, Normalise normalise, Gradients gradients, ParamGradients paramGradients) {
  const Tensor x = w.input(shape), dy = w.input(shape);
  auto [gamma, beta] = popnn::createNormParams(w.graph, x);
  w.into(gamma);
  w.into(beta);
  const auto [mean, deviation] = statistics(x);
  const auto [y, whitened] = normalise(x, gamma, beta, mean, deviation);
  w.show("mean", mean);
  w.show("invStdDev", deviation);
  w.show("y", y);
  w.show("dx", gradients(x, dy, mean, deviation, gamma));
  const auto [dGamma, dBeta] = paramGradients(whitened, dy);
  popnn::bn::batchNormParamUpdate(w.graph, dGamma, dBeta, -0.5f, gamma, beta, w.prog);
  w.show("gamma", gamma);
  w.show("beta", beta);
  w.run();
}

void norms() {
  World w(chosenType());
  const std::size_t kind = number(), groups = number();
  const bool unbiased = number(), stable = number(), strided = number();
  const Shape shape = numbers();
  Graph &g = w.graph;
  Sequence &p = w.prog;
  const OptionFlags options = kind == 1 ? OptionFlags{{"groupNormStridedChannelGrouping", strided ? "true" : "false"}} : OptionFlags{};
  const float eps = 0.01f;
  if (kind == 0)
    norm(
        w, shape, [&](Tensor x) { return popnn::bn::batchNormStatistics(g, x, eps, p, unbiased, stable); },
        [&](Tensor x, Tensor ga, Tensor be, Tensor m, Tensor s) { return popnn::bn::batchNormalise(g, x, ga, be, m, s, p); },
        [&](Tensor x, Tensor d, Tensor m, Tensor s, Tensor ga) { return popnn::bn::batchNormGradients(g, x, d, m, s, ga, p); },
        [&](Tensor wh, Tensor d) { return popnn::bn::batchNormParamGradients(g, wh, d, p); });
  else if (kind == 1)
    norm(
        w, shape,
        [&](Tensor x) { return popnn::gn::groupNormStatistics(g, x, eps, p, unsigned(groups), unbiased, stable, FLOAT, {}, options); },
        [&](Tensor x, Tensor ga, Tensor be, Tensor m, Tensor s) { return popnn::gn::groupNormalise(g, x, ga, be, m, s, p, {}, options); },
        [&](Tensor x, Tensor d, Tensor m, Tensor s, Tensor ga) {
          return popnn::gn::groupNormGradients(g, x, d, m, s, ga, p, FLOAT, {}, options);
        },
        [&](Tensor wh, Tensor d) { return popnn::gn::groupNormParamGradients(g, wh, d, p); });
  else if (kind == 2)
    norm(
        w, shape, [&](Tensor x) { return popnn::ln::layerNormStatistics(g, x, eps, p, unbiased, stable); },
        [&](Tensor x, Tensor ga, Tensor be, Tensor m, Tensor s) { return popnn::ln::layerNormalise(g, x, ga, be, m, s, p); },
        [&](Tensor x, Tensor d, Tensor m, Tensor s, Tensor ga) { return popnn::ln::layerNormGradients(g, x, d, m, s, ga, p); },
        [&](Tensor wh, Tensor d) { return popnn::ln::layerNormParamGradients(g, wh, d, p); });
  else
    norm(
        w, shape, [&](Tensor x) { return popnn::in::instanceNormStatistics(g, x, eps, p, unbiased, stable); },
        [&](Tensor x, Tensor ga, Tensor be, Tensor m, Tensor s) { return popnn::in::instanceNormalise(g, x, ga, be, m, s, p); },
        [&](Tensor x, Tensor d, Tensor m, Tensor s, Tensor ga) { return popnn::in::instanceNormGradients(g, x, d, m, s, ga, p); },
        [&](Tensor wh, Tensor d) { return popnn::in::instanceNormParamGradients(g, wh, d, p); });
}

/// Blocks whose rows and columns are arguments, and whose values are read.
popsparse::COOMatrix<float> coordinates(std::size_t rows, std::size_t columns, const std::array<std::size_t, 2> &block) {
  const auto at = numbers(), across = numbers();
  std::vector<float> values(at.size() * block[0] * block[1]);
  for (float &v : values)
    if (std::scanf("%f", &v) != 1)
      std::cerr << "too few numbers\n";
  return popsparse::COOMatrix<float>(rows, columns, values, across, at, block);
}

template <class Partitioner> auto dataOf(const Partitioner &partitioner, const popsparse::COOMatrix<float> &coo, std::size_t format) {
  const auto data = partitioner.createSparsityDataImpl(coo);
  if (format == 0)
    return data;
  if (format == 1)
    return partitioner.createSparsityDataImpl(partitioner.sparsityDataImplToCSRMatrix(data));
  return partitioner.createSparsityDataImpl(partitioner.sparsityDataImplToCSCMatrix(data));
}

template <class Data> void writeSparse(World &w, const popsparse::dynamic::SparseTensor &to, const Data &data) {
  w.into(to.getMetaInfoTensor(), std::vector<float>(data.metaInfo.begin(), data.metaInfo.end()));
  w.into(to.getNzValuesTensor(), data.nzValues);
}

void sparseDynamic() {
  namespace ps = popsparse::dynamic;
  World w(chosenType());
  const std::size_t m = number(), k = number(), n = number(), spare = number(), format = number();
  const bool left = number(), right = number();
  const std::array<std::size_t, 2> block{number(), number()};
  const popsparse::COOMatrix<float> coo = coordinates(m, k, block);
  const ps::SparsityParams sparsity(ps::SparsityType::Block, ps::SparsityStructure::Unstructured, block);
  const auto params = ps::MatMulParams::createWithNumNonZeroValues(sparsity, coo.nzValues.size() + spare * block[0] * block[1], 1, m, k, n);
  ps::PlanningCache cache;
  const ps::Partitioner<float> partitioner(params, w.type, w.graph.getTarget(), {}, &cache);
  const ps::SparseTensor a = ps::createSparseDenseMatMulLHS(w.graph, w.type, params, "a", {{"doGradAPass", "true"}}, &cache);
  const auto data = dataOf(partitioner, coo, format);
  writeSparse(w, a, data);
  const std::size_t inner = left ? m : k;
  const Tensor b = right ? w.input({1, n, inner}) : w.input({1, inner, n});
  w.show("product", ps::sparseDenseMatMul(w.graph, a, b, w.prog, left, right, "product", {}, &cache));
  const auto fc = ps::FullyConnectedParams::createWithNumNonZeroValues(sparsity, params.getNumNonZeroValues(), n, 1, k, m);
  const ps::SparseTensor weights = ps::createFullyConnectedWeights(w.graph, w.type, fc, "weights");
  writeSparse(w, weights, ps::Partitioner<float>(fc, w.type, w.graph.getTarget(), {}).createSparsityDataImpl(coo));
  const Tensor x = w.input({n, k}), dy = w.input({n, m});
  w.show("y", ps::fullyConnectedFwd(w.graph, weights, x, fc, w.prog));
  w.show("dx", ps::fullyConnectedGradA(w.graph, weights, dy, fc, w.prog));
  w.show("dW", ps::fullyConnectedSparseGradW(w.graph, weights.getMetaInfoTensor(), dy, x, fc, w.prog));
  w.run();
  const auto back = partitioner.sparsityDataImplToCOOMatrix(data);
  std::cout << "rows:";
  for (std::size_t row : back.rowIndices)
    std::cout << " " << row;
  std::cout << "\n";
}

void sparseStatic() {
  namespace ps = popsparse::static_;
  World w(chosenType());
  const std::size_t m = number(), k = number(), n = number();
  const bool denseFirst = number(), left = number(), right = number();
  const std::array<std::size_t, 2> block{number(), number()};
  const std::size_t rows = denseFirst ? k : m, columns = denseFirst ? m : k;
  const popsparse::COOMatrix<float> coo = coordinates(rows, columns, block);
  const popsparse::CSRMatrix<float> csr = popsparse::detail::asCSR(popsparse::detail::asCOO(
      popsparse::detail::blocksOf(coo, {rows, columns}, block).at,
      popsparse::detail::valuesOf(popsparse::detail::blocksOf(coo, {rows, columns}, block), coo.nzValues, coo.getBlockSize()),
      {rows, columns}, block));
  const auto params = denseFirst ? ps::MatMulParams::createForDenseSparse(1, n, k, m) : ps::MatMulParams::createForSparseDense(1, m, k, n);
  const ps::Partitioner<float> partitioner(params, w.type, w.graph.getTarget(), {});
  if (denseFirst) {
    const ps::SparseTensor b = ps::createDenseSparseMatMulRHS(w.graph, w.type, params, csr, "b");
    w.into(b.getNzValuesTensor(), partitioner.createSparsityDataImpl(coo).nzValues);
    const std::size_t inner = right ? m : k;
    w.show("product", ps::denseSparseMatMul(w.graph, left ? w.input({1, inner, n}) : w.input({1, n, inner}), b, w.prog, left, right));
  } else {
    const ps::SparseTensor a = ps::createSparseDenseMatMulLHS(w.graph, w.type, params, csr, "a");
    w.into(a.getNzValuesTensor(), partitioner.createSparsityDataImpl(csr).nzValues);
    const std::size_t inner = left ? m : k;
    w.show("product", ps::sparseDenseMatMul(w.graph, a, right ? w.input({1, n, inner}) : w.input({1, inner, n}), w.prog, left, right));
  }
  w.run();
}

void blockSparse() {
  namespace ps = popsparse::experimental;
  World w;
  const std::array<int, 3> size{int(number()), int(number()), int(number())}, block{int(number()), int(number()), int(number())};
  const unsigned groups = unsigned(number());
  const bool sparseResult = number(), transposed = number();
  const auto mask = numbers<unsigned char>();
  const ps::BSMatMulParams params = sparseResult
                                        ? ps::BSMatMulParams(size, block, mask, FLOAT, FLOAT, FLOAT, ps::SubBlockMask::None, groups)
                                        : ps::BSMatMulParams(size, block, mask, transposed, FLOAT, FLOAT, FLOAT, groups);
  const Tensor a = ps::createBSMatMulInputLHS(w.graph, params, "a"), b = ps::createBSMatMulInputRHS(w.graph, params, "b");
  w.into(a);
  w.into(b);
  w.show("product", ps::bsMatMul(w.graph, params, w.prog, a, b));
  w.run();
}

const std::map<std::string, std::function<void()>> refusals{
    {"varTimeSteps",
     [] {
       World w;
       const Tensor steps = w.graph.addVariable(UNSIGNED_INT, {1}, "steps");
       popnn::lstm::LstmParams params(FLOAT, 1, 2, steps, {3, 4});
       popnn::lstm::lstmFwd(w.graph, params, popnn::lstm::createInitialState(w.graph, params), popnn::lstm::createInput(w.graph, params),
                            popnn::lstm::createWeights(w.graph, params), nullptr, w.prog);
     }},
    {"activation",
     [] {
       World w;
       popnn::gru::GruParams params(FLOAT, 1, 2, {3, 4}, popnn::NonLinearityType::GELU);
       popnn::gru::gruFwd(w.graph, params, popnn::gru::createInitialState(w.graph, params), popnn::gru::createInput(w.graph, params),
                          popnn::gru::createWeights(w.graph, params), nullptr, w.prog);
     }},
    {"kernel",
     [] {
       World w;
       popnn::pooling::PoolParams(popnn::PoolingType::MAX, {4}, {7}, {1}, {1}, {1}, 2, 3, FLOAT).getOutputFieldShape();
     }},
    {"groups",
     [] {
       World w;
       const Tensor x = w.graph.addVariable(FLOAT, {2, 5}, VariableMappingMethod::LINEAR, "x");
       popnn::gn::groupNormStatistics(w.graph, x, 1e-3f, w.prog, 2, false);
     }},
    {"room",
     [] {
       World w;
       const auto params = popsparse::dynamic::MatMulParams::createWithNumNonZeroValues({}, 1, 1, 4, 4, 2);
       popsparse::dynamic::Partitioner<float>(params, FLOAT, w.graph.getTarget(), {})
           .createSparsityDataImpl(popsparse::COOMatrix<float>(4, 4, {1, 2}, {0, 1}, {0, 1}));
     }},
    {"overlap",
     [] {
       World w;
       const auto params = popsparse::dynamic::MatMulParams::createWithNzRatio({}, 1, 1, 4, 4, 2);
       popsparse::dynamic::Partitioner<float>(params, FLOAT, w.graph.getTarget(), {})
           .createSparsityDataImpl(popsparse::COOMatrix<float>(4, 4, {1, 2}, {3, 3}, {2, 2}));
     }},
    {"option",
     [] {
       World w;
       const Tensor x = w.graph.addVariable(FLOAT, {2, 4}, VariableMappingMethod::LINEAR, "x");
       popnn::gn::groupNormStatistics(w.graph, x, 1e-3f, w.prog, 2, false, false, FLOAT, {}, {{"groupNormColour", "red"}});
     }},
};

} // namespace

int main(int argc, char **argv) {
  Scenarios scenarios{{"lstm", lstm},
                      {"recurrence", recurrence},
                      {"gru", gru},
                      {"ctcLoss", ctcLoss},
                      {"beamSearch", beamSearch},
                      {"pooling", pooling},
                      {"norms", norms},
                      {"sparseDynamic", sparseDynamic},
                      {"sparseStatic", sparseStatic},
                      {"blockSparse", blockSparse}};
  for (const auto &refusal : refusals)
    scenarios.insert(refusal);
  return runNumbers(scenarios, argc, argv);
}
