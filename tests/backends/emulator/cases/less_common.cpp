// Functions of PopLibs that few programs call: inputs are read from stdin, results are printed by name.
#include "numbers.hpp"

#include <poplar/MetadataCreation.hpp>
#include <poplin/ConvPreplan.hpp>
#include <poplin/ConvUtil.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/FullyConnected.hpp>
#include <poplin/MultiConvolution.hpp>
#include <poplin/experimental/LuFactorization.hpp>
#include <poplin/experimental/QRFactorization.hpp>
#include <popnn/Recurrent.hpp>
#include <popnn/SpatialSoftMax.hpp>
#include <popnn/experimental/ROIAlign.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/ExprOpUtils.hpp>
#include <popops/NormaliseImage.hpp>
#include <popops/OperationDefUtil.hpp>
#include <popops/Reduce.hpp>
#include <popops/SequenceSlice.hpp>
#include <popops/SplineBasis.hpp>
#include <popops/SplineWeighting.hpp>
#include <popsparse/Embedding.hpp>
#include <popsparse/SparsePartitioner.hpp>
#include <popsparse/experimental/BlockSparse.hpp>

namespace {

void qr() {
  World w(chosenType());
  const std::size_t m = number(), n = number();
  auto matrices = poplin::experimental::createQRFactorizationMatrices(w.graph, w.type, m, n, "qr");
  w.into(matrices[0]);
  w.into(matrices[1]);
  poplin::experimental::QRFactorization(w.graph, matrices[0], matrices[1], w.prog, "qr", {{"rowsPerIteration", "8"}});
  w.show("r", matrices[0]);
  w.show("q", matrices[1]);
  w.run();
}

void lu() {
  World w;
  const std::size_t m = number(), n = number();
  Tensor a = w.input({m, n});
  const auto [lower, upper] = poplin::experimental::LUFactorization(w.graph, a, w.prog, "lu");
  w.show("l", lower);
  w.show("u", upper);
  w.show("a", a);
  w.run();
}

/// Of a field of one dimension: sizes, then the numbers of each transformation.
poplin::ConvParams oneDimension() {
  const std::size_t batch = number(), size = number(), kernel = number(), in = number(), out = number(), groups = number();
  poplin::ConvParams p(FLOAT, batch, {size}, {kernel}, in, out, groups);
  for (auto *t : {&p.inputTransform, &p.kernelTransform}) {
    for (auto *value : {&t->truncationLower, &t->truncationUpper, &t->dilation, &t->paddingLower, &t->paddingUpper})
      (*value)[0] = unsigned(number());
    t->flip[0] = number();
  }
  auto &o = p.outputTransform;
  for (auto *value : {&o.truncationLower, &o.truncationUpper, &o.stride, &o.paddingLower, &o.paddingUpper})
    (*value)[0] = unsigned(number());
  return p;
}

/// Forward, and both gradients as convolutions.
void gradients() {
  World w;
  const poplin::ConvParams p = oneDimension(), backward = poplin::getGradientParams(p), update = poplin::getWeightUpdateParams(p);
  std::cout << "sizes: " << p.getOutputSize(0) << " " << backward.getOutputSize(0) << " " << update.getOutputSize(0) << std::endl;
  const Tensor x = poplin::createInput(w.graph, p, "x"), kernel = poplin::createWeights(w.graph, p, "kernel");
  w.into(x);
  w.into(kernel);
  const std::vector<Tensor> y = poplin::multiconv::convolution(w.graph, {{x, kernel, p, {}}}, false, w.prog, "forward");
  w.show("y", y.at(0));
  const Tensor dy = w.input(y[0].shape());
  w.show("dx", poplin::multiconv::convolution(w.graph, {{dy, kernel, backward, {}}}, true, w.prog, "backward").at(0));
  if (p.numConvGroups > 1)
    return w.run();
  // Samples and channels change places: the channels of the input are samples, and the samples are channels of both operands.
  const Tensor dk = poplin::convolution(w.graph, x.dimShuffle({1, 0, 2}), dy.dimShuffle({1, 0, 2}).expand({0}), update, false, w.prog, "update");
  w.show("dk", dk.dimShuffle({1, 0, 2}).expand({0}));
  w.run();
}

/// Every index that meets, and the hulls of ranges.
void indices() {
  const poplin::ConvParams p = oneDimension();
  const unsigned outs = unsigned(p.getOutputSize(0)), taps = unsigned(p.kernelShape[0]), ins = unsigned(p.inputFieldShape[0]);
  std::cout << "met:";
  for (unsigned out = 0; out < outs; ++out)
    for (unsigned tap = 0; tap < taps; ++tap) {
      const unsigned in = poplin::getInputIndex(0, out, tap, p);
      std::cout << " " << int(in);
      if (in != ~0u && poplin::getKernelIndex(0, out, in, p) != tap)
        std::cerr << "the kernel's index differs\n";
    }
  const auto all = std::make_pair(0u, outs);
  const auto print = [](const char *name, std::pair<unsigned, unsigned> range) {
    std::cout << "\n" << name << ": " << range.first << " " << range.second;
  };
  print("input", poplin::getInputRange(0, all, p));
  print("inputOfTap", poplin::getInputRange(0, all, 0u, p));
  print("kernel", poplin::getKernelRange(0, all, std::make_pair(0u, ins), p));
  print("outputOfInput", poplin::getOutputRangeForInputIndex(0, all, ins - 1, p));
  print("outputOfTap", poplin::getOutputRangeForKernelIndex(0, all, taps - 1, p));
  std::cout << "\nflops: " << poplin::getFwdFlops(p) << std::endl;
}

void recurrent() {
  World w;
  namespace rnn = popnn::rnn;
  const unsigned steps = unsigned(number()), batch = unsigned(number()), in = unsigned(number()), out = unsigned(number());
  const bool before = number();
  const auto type = popnn::NonLinearityType::TANH;
  const Tensor x = rnn::createInput(w.graph, steps, batch, in, out, FLOAT), start = rnn::createFwdState(w.graph, FLOAT, batch, out, w.prog, true, false);
  const Tensor ff = rnn::createWeightsInput(w.graph, steps, batch, in, out, FLOAT), fb = rnn::createWeightsFeedback(w.graph, batch, out, FLOAT);
  for (const Tensor &t : {x, start, ff, fb})
    w.into(t);
  const Tensor biases = w.input({out});
  const Tensor weighted = rnn::forwardWeightInput(w.graph, x, ff, w.prog);
  const Tensor y = rnn::rnnFwdSequence(w.graph, w.prog, start, before ? &weighted : nullptr, biases, ff, fb, x, type, FLOAT, false, "fwd");
  w.show("y", y);
  const Tensor dy = w.input(y.shape());
  const auto [dx, dff, dfb, db] = rnn::rnnBwdSequence(w.graph, true, false, w.prog, start, y, biases, ff, fb, dy, x, type, FLOAT, "bwd");
  w.show("dx", dx);
  w.show("dff", dff);
  w.show("dfb", dfb);
  w.show("db", db);
  // The last step alone, added to zeros.
  const Tensor none = rnn::createBwdState(w.graph, FLOAT, batch, out, w.prog);
  const auto last = rnn::backwardGradientStep(w.graph, dy[steps - 1], none, y[steps - 1], ff, fb, w.prog, type);
  w.show("dxLast", last.first);
  Tensor sumFf = w.input({out, in}), sumFb = w.input({out, out}), sumB = w.input({out});
  rnn::paramDeltaUpdate(w.graph, last.second, x[steps - 1], steps > 1 ? y[steps - 2] : start, sumFf, sumFb, sumB, w.prog);
  w.show("sumFf", sumFf);
  w.show("sumFb", sumFb);
  w.show("sumB", sumB);
  w.run();
  std::cout << "flops: " << rnn::getFwdFlops(steps, batch, in, out) << " " << rnn::getMatMulPrePlanParameters(steps, batch, in, out, FLOAT).size()
            << "\n";
}

void spatial() {
  World w;
  const std::size_t fields = number(), rows = number(), columns = number();
  const auto [places, temperature] = popnn::spatialSoftMax2D(w.graph, w.prog, w.input({fields, rows, columns}), 0.5f);
  w.show("places", places);
  w.show("temperature", temperature);
  w.run();
}

void image() {
  World w;
  const bool bytes = number();
  const Tensor in = popops::createNormaliseImageInput(w.graph, bytes ? UNSIGNED_CHAR : FLOAT, {2, 3, 3}, "image");
  const Type type = bytes ? HALF : FLOAT;
  w.prog.add(popops::cast(w.graph, w.input({2, 3, 3}), in));
  const Tensor offsets = popops::cast(w.graph, w.input({3}), type, w.prog), scales = popops::cast(w.graph, w.input({3}), type, w.prog);
  const Tensor out = popops::normaliseImage(w.graph, w.prog, in, 0.125f, offsets, scales, "normalise");
  std::cout << "shape: " << out.dim(2) << " " << (out.elementType() == type) << std::endl;
  w.show("out", out);
  w.run();
}

/// Numbers as UNSIGNED_INT or INT.
Tensor integers(World &w, const Shape &shape, Type type = UNSIGNED_INT) { return popops::cast(w.graph, w.input(shape), type, w.prog); }

void runs() {
  World w;
  const std::size_t in = number(), out = number(), width = number(), count = number();
  const bool zero = number();
  const Tensor from = w.input({in, width}), to = w.input({out, width});
  const Tensor n = integers(w, {count}), inOffset = integers(w, {count}), outOffset = integers(w, {count});
  popops::sequenceSlice(w.graph, from, to, n, inOffset, outOffset, zero, w.prog, "runs");
  w.show("out", to);
  w.run();
}

void splines() {
  World w;
  const std::size_t edges = number(), dims = number(), weights = number(), in = number(), out = number();
  const unsigned degree = unsigned(number());
  std::size_t count = 1;
  for (std::size_t d = 0; d < dims; ++d)
    count *= degree + 1;
  const Tensor pseudo = w.input({edges, dims}), sizes = integers(w, {dims}, INT), open = integers(w, {dims}, UNSIGNED_CHAR);
  const Tensor basis = w.graph.addVariable(FLOAT, {edges, count}, VariableMappingMethod::LINEAR, "basis");
  const Tensor index = w.graph.addVariable(INT, {edges, count}, VariableMappingMethod::LINEAR, "index");
  popops::splineBasis(w.graph, pseudo, sizes, open, basis, index, degree, w.prog, "basis");
  w.show("basis", basis);
  w.show("index", index);
  const Tensor x = w.input({edges, in}), kernel = w.input({weights, in, out});
  w.show("out", popops::splineWeighting(w.graph, x, kernel, basis, index, w.prog, "weighting"));
  w.run();
}

void embedding() {
  using namespace popsparse;
  World w;
  const std::size_t inputs = 6, outputs = 8, n = number();
  COOMatrix<float> matrix;
  for (std::size_t value : numbers()) {
    matrix.rowIndices.push_back(value / inputs);
    matrix.columnIndices.push_back(value % inputs);
    matrix.nzValues.push_back(float(value + 1));
  }
  const dynamic::SparsityParams sparsity(dynamic::SparsityType::Element, dynamic::SparsityStructure::Unstructured);
  const auto params = dynamic::FullyConnectedParams::createWithNzRatio(sparsity, 0.5, 3, 1, inputs, outputs);
  const dynamic::SparseTensor weights = dynamic::createFullyConnectedWeights(w.graph, FLOAT, params, "weights");
  const dynamic::Partitioner<float> partitioner(params, FLOAT, w.graph.getTarget(), {});
  const auto data = partitioner.createSparsityDataImpl(matrix);
  w.into(weights.getMetaInfoTensor(), std::vector<float>(data.metaInfo.begin(), data.metaInfo.end()));
  w.into(weights.getNzValuesTensor(), data.nzValues);
  const Tensor indices = dynamic::createIndicesTensor(w.graph, params, n);
  w.prog.add(popops::cast(w.graph, w.input({n}), indices));
  const Tensor slices = dynamic::createSliceTensor(w.graph, FLOAT, params, n, "slices");
  w.into(slices);
  w.show("before", popops::add(w.graph, dynamic::embeddingSlice(w.graph, weights, indices, w.prog, params, "before"), 0.f, w.prog));
  const Tensor scale = w.input({});
  dynamic::embeddingUpdateAdd(w.graph, weights, slices, indices, scale, w.prog, params, "update");
  w.show("after", dynamic::embeddingSlice(w.graph, weights, indices, w.prog, params, "after"));
  w.run();
}

void slices() {
  World w(chosenType());
  const Tensor t = w.input({5, 3}), s = w.input({4, 1, 3}), t2 = w.input({2, 5, 3}), s2 = w.input({2, 4, 1, 3});
  const Tensor places = integers(w, {4, 1}), places2 = integers(w, {2, 4, 1});
  popops::multiUpdateMul(w.graph, t, s, places, {0}, {1}, w.prog, {}, {}, "mul");
  popops::groupedMultiUpdateMul(w.graph, t2, s2, places2, {0}, {1}, w.prog, {}, {}, "mul");
  w.show("mul", t);
  w.show("grouped", t2);
  const Tensor slice = w.graph.addVariable(FLOAT, {2, 1, 3}, VariableMappingMethod::LINEAR, "slice");
  const Tensor all = popops::createSliceableTensorFromSlice(w.graph, slice, {1, 0}, {4, 2}, "all");
  std::cout << "shape: " << all.dim(0) << " " << all.dim(1) << " " << all.dim(2);
  bool same = true;
  for (std::size_t i = 0; i < 4; ++i)
    same = same && w.graph.getTileMapping(all.slice({0, i, 0}, {2, i + 1, 3})) == w.graph.getTileMapping(slice);
  const Tensor output = popops::createDynamicSliceOutput(w.graph, all, places, {1}, {2}, "output");
  same = same && w.graph.getTileMapping(output) == popops::getSliceMapping(w.graph, all, {1}, {2});
  std::cout << " " << same << " " << output.dim(1) << std::endl;
  w.run();
}

/// The image of each region is an unsigned integer.
void regions() {
  World w(chosenType());
  const bool aligned = number();
  const std::size_t samples = number(), rows = number(), columns = number(), quarters = number();
  const popnn::experimental::roiAlignParams params(samples, rows, columns, aligned, float(quarters) / 4);
  const Shape shape = numbers();
  const std::size_t n = number();
  const Tensor data = w.input(shape), corners = w.input({n, 4}), images = popops::cast(w.graph, w.input({n}), UNSIGNED_INT, w.prog);
  const Tensor gradient = w.input({n, shape[1], rows, columns});
  w.show("out", popnn::experimental::roiAlignFwd(w.graph, w.prog, data, corners, images, params));
  w.show("gradient", popnn::experimental::roiAlignInputGradient(w.graph, w.prog, data, corners, images, gradient, params));
  w.run();
}

void blockSoftmax() {
  World w(chosenType());
  const auto mask = popsparse::experimental::SubBlockMask(number());
  const unsigned groups = unsigned(number());
  const std::array<int, 2> size{int(number()), int(number())}, block{int(number()), int(number())};
  const auto sparsity = numbers<unsigned char>();
  const std::size_t blocks = std::size_t(std::count(sparsity.begin(), sparsity.end(), 1));
  const Tensor x = w.input({blocks, std::size_t(block[0] * block[1])}), gradient = w.input(x.shape());
  namespace sparse = popsparse::experimental;
  const Tensor y = sparse::bsSoftmax(w.graph, x, size, block, sparsity, mask, groups, w.prog);
  w.show("softmax", y);
  w.show("gradient", sparse::bsSoftmaxGrad(w.graph, y, gradient, size, block, sparsity, w.prog));
  sparse::bsSoftmaxInPlace(w.graph, x, size, block, sparsity, mask, groups, w.prog);
  w.show("inPlace", x);
  w.run();
}

/// Reductions of rows whose elements lie one by one on thousands of tiles.
void manyTiles() {
  World w(FLOAT, 2, 1472);
  const std::size_t n = number();
  const Tensor from = w.input({2, n}), t = w.graph.clone(from, "spread"), out = w.input({2});
  for (std::size_t i = 0; i < n; ++i)
    w.graph.setTileMapping(t.slice(i, i + 1, 1), unsigned(7 * i % 2944));
  w.prog.add(Copy(from, t));
  using popops::Operation;
  for (const auto &[name, op] : std::vector<std::pair<std::string, Operation>>{{"sum", Operation::ADD}, {"squares", Operation::SQUARE_ADD}, {"log", Operation::LOG_ADD}})
    w.show(name, popops::reduce(w.graph, t, {1}, op, w.prog));
  const Tensor scale = w.graph.addConstant(FLOAT, {}, 0.5f);
  w.graph.setTileMapping(scale, 0);
  popops::reduceWithOutput(w.graph, t, out, {1}, popops::ReduceParams(Operation::ADD, true, scale), w.prog);
  w.show("updated", out);
  w.show("any", popops::reduce(w.graph, popops::gt(w.graph, t, 3.5f, w.prog), {1}, Operation::LOGICAL_OR, w.prog));
  w.run();
}

/// The largest code that a tile needs to receive data, in a reduction over all tiles of two IPUs.
void codeToReceive() {
  World w(FLOAT, 2, 1472);
  const Tensor t = w.graph.addVariable(FLOAT, {2944, 3}, "t");
  for (unsigned tile = 0; tile < 2944; ++tile)
    w.graph.setTileMapping(t[tile], tile);
  popops::reduce(w.graph, t, {0, 1}, popops::Operation::ADD, w.prog);
  Engine engine(w.graph, w.prog);
  std::size_t most = 0;
  const EmulatorProfile profile = engine.getEmulatorProfile();
  for (const TileMemory &tile : profile.memory)
    most = std::max<std::size_t>(most, tile.exchangeCode);
  std::cout << most << "\n";
}

/// The bits of quarters that one compute set casts.
void quarters() {
  World w(chosenType());
  const auto format = number() ? QuarterMetadata::Format::F152 : QuarterMetadata::Format::F143;
  const std::int8_t scale = std::int8_t(int(number()) - 3);
  const std::size_t n = number();
  const Tensor x = w.input({n}), metadata = createConstantMetadataTensor(w.graph, format, scale);
  const ComputeSet set = w.graph.addComputeSet("casts");
  const Tensor narrow = popops::cast(w.graph, x, QUARTER, metadata, set, "narrow");
  w.prog.add(Execute(set));
  const ComputeSet later = w.graph.addComputeSet("back");
  const Tensor back = popops::cast(w.graph, narrow, w.type, later, "back");
  w.prog.add(Execute(later));
  w.show("bits", narrow.reinterpret(UNSIGNED_CHAR));
  w.show("back", back);
  w.run();
}

void accuracy() {
  World w;
  const Tensor values = w.input({5});
  for (std::size_t i = 0; i < 5; ++i)
    w.show("ok" + std::to_string(i), popops::checkAccuracyWhenCast(w.graph, values[i], HALF, 1e-4, w.prog));
  w.run();
  popops::checkAccuracyWhenCast(w.graph, values, HALF, 1e-4, w.prog);
}

void names() {
  using namespace popops::expr::ostream_ext;
  std::cout << popops::expr::UnaryOpType::GELU_ERF << " " << popops::expr::BinaryOpType::SHIFT_LEFT << " " << popops::expr::TernaryOpType::SELECT
            << "\n"
            << poputil::asString(popops::Operation::SQUARE_ADD) << " "
            << poputil::templateVertex("Reduce", FLOAT, popops::Operation::LOG_ADD) << "\n";
  using namespace popops::expr;
  std::cout << Add(_1, Const(2.f)).deepEquals(Add(_1, Const(2.f))) << Add(_1, Const(2.f)).deepEquals(Add(_1, Const(3.f)))
            << Add(_1, _2).deepEquals(Sub(_1, _2)) << Neg(_1).deepEquals(Any(_1)) << "\n";
  const auto plans = poplin::fc::getMatMulPrePlanParameters({1, 4, 5, 6}, {{"partialsType", "float"}}, HALF, false);
  for (const auto &plan : plans)
    std::cout << plan.second.at("fullyConnectedPass") << " " << plan.first.aShape[1] << " " << plan.first.aShape[2] << " " << plan.first.bShape[2]
              << "\n";
  const Target target = smallDevice().getTarget();
  const poplar::OptionFlags options;
  poplin::ConvParams params(FLOAT, 1, {4}, {2}, 1, 1, 1), other = params;
  other.outputTransform.stride[0] = 2;
  poplin::PlanningCache cache;
  const std::set<poplin::ConvPlanParams> convolutions{
      std::make_tuple(&target, params, &options), std::make_tuple(&target, other, &options), std::make_tuple(&target, params, &options)};
  poplin::preplan(convolutions, {std::make_tuple(&target, plans[0].first, &options)}, cache);
  std::cout << convolutions.size() << " convolutions\n";
  IPUModel linked;
  linked.numIPUs = 2;
  linked.globalExchangeConstraints.emplace_back(2.5e9, std::vector<GlobalExchangeFlow>{{0, 1}, {1, 0}});
  const IPUModel copied(linked);
  const GlobalExchangeConstraint &kept = copied.globalExchangeConstraints.back();
  std::cout << kept.bandwidth << (kept.flows[0] == GlobalExchangeFlow(0, 1)) << (kept.flows[0] != kept.flows[1])
            << linked.createDevice().getTarget().getNumIPUs() << "\n";
  poplin::matmulValidateOptions({{"partialsType", "half"}});
  poplin::convolutionValidateOptions({{"parts", "half"}});
}

} // namespace

int main(int argc, char **argv) {
  return runNumbers({{"qr", qr},
                     {"lu", lu},
                     {"gradients", gradients},
                     {"indices", indices},
                     {"recurrent", recurrent},
                     {"spatial", spatial},
                     {"image", image},
                     {"runs", runs},
                     {"splines", splines},
                     {"embedding", embedding},
                     {"slices", slices},
                     {"regions", regions},
                     {"blockSoftmax", blockSoftmax},
                     {"manyTiles", manyTiles},
                     {"codeToReceive", codeToReceive},
                     {"quarters", quarters},
                     {"accuracy", accuracy},
                     {"names", names}},
                    argc, argv);
}
