// Scatter, histograms, circular buffers, triangular systems and other smaller parts of the libraries.
#include <poplar/Type.hpp>
#include <pvti/pvti.hpp>

/// Programs use parts of the standard library that the SDK's Type.hpp brings, so nothing else is included above.
inline void printOwned(std::ostream &os, std::unique_ptr<poplar::Type> type) { os << "type: " << type->size() << "\n"; }

#include "numbers.hpp"

#include <popnn/Loss.hpp>
#include <popnn/NonLinearityDefUtil.hpp>
#include <popops/CircBuf.hpp>
#include <popops/ElementWise.hpp>
#include <popops/GatherStatistics.hpp>
#include <popops/HostSliceTensor.hpp>
#include <popops/Scatter.hpp>
#include <popops/TopK.hpp>
#include <poplin/Cholesky.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/MeshGrid.hpp>
#include <poplin/TriangularSolve.hpp>
#include <poprand/RandomGen.hpp>

namespace {

Tensor integers(World &w, const Shape &shape) {
  const Tensor t = w.input(shape);
  return popops::cast(w.graph, t, INT, w.prog);
}

/// The second result adds updates, of which XLA's scatter says that they come in order.
void scatter() {
  World w;
  const Shape shape = numbers(), indexShape = numbers(), updateShape = numbers();
  const std::size_t vectorDim = number();
  const auto windowDims = numbers<unsigned>();
  const auto inserted = numbers();
  const auto scattered = numbers<unsigned>();
  const Tensor a = w.input(shape), b = w.input(shape), indices = integers(w, indexShape), updates = w.input(updateShape);
  popops::scatter(w.graph, a, indices, updates, vectorDim, windowDims, inserted, scattered, w.prog);
  popops::UpdateComputationFunc less = [](Graph &graph, Tensor &old, Tensor &update, Sequence &prog) {
    return popops::sub(graph, old, update, prog);
  };
  popops::scatter(w.graph, b, indices, updates, vectorDim, windowDims, inserted, scattered, less, w.prog);
  w.show("written", a);
  w.show("less", b);
  w.run();
}

void statistics() {
  World w(chosenType());
  const std::size_t n = number(), levels = number();
  const bool absolute = number();
  const Tensor x = w.input({n}), limits = w.input({levels});
  const Tensor counts = popops::histogram(w.graph, x, limits, absolute, w.prog);
  w.show("counts", counts);
  Tensor more = w.graph.clone(counts);
  w.prog.add(Copy(counts, more));
  popops::histogram(w.graph, x, more, true, limits, absolute, w.prog);
  w.show("twice", more);
  w.show("floats", popops::histogram(w.graph, x, limits, absolute, w.prog, {}, {{"useFloatArithmetic", "true"}}));
  w.run();
}

void ring() {
  World w;
  const unsigned size = unsigned(number()), adds = unsigned(number());
  popops::CircBuf ring(w.graph, FLOAT, size, {2, 3}, "ring");
  for (unsigned i = 0; i < adds; ++i)
    ring.add(w.input({2, 3}), w.prog);
  for (unsigned i = 0; i < size; ++i)
    w.show("before" + std::to_string(i), ring.prev(i, w.prog));
  w.show("at", ring.getIndex());
  w.run();
}

void triangular() {
  World w;
  const Shape shape = numbers(), sides = numbers();
  const bool left = number(), lower = number(), unit = number();
  const Tensor a = w.input(shape), b = w.input(sides), positive = w.input(shape);
  w.show("x", poplin::triangularSolve(w.graph, a, b, left, lower, unit, w.prog, {}, {{"blockSize", "8"}}));
  w.show("mask", poplin::triangularMask(w.graph, a, lower, unit, w.prog));
  w.show("factor", poplin::cholesky(w.graph, positive, lower, w.prog));
  w.show("kept", b);
  const Tensor spaced = poplin::linspace(w.graph, FLOAT, -1, 2, 5), other = poplin::linspace(w.graph, HALF, 0, 1, 3);
  w.show("spaced", spaced);
  const auto grids = poplin::meshgrid2d(w.graph, spaced, popops::cast(w.graph, other, FLOAT, w.prog));
  w.show("gridX", popops::add(w.graph, grids[0], 0.f, w.prog));
  w.show("gridY", popops::add(w.graph, grids[1], 0.f, w.prog));
  w.run();
}

void layersOfConvolutions() {
  World w;
  const poplin::ConvParams params(FLOAT, 2, {5, 4}, {3, 2}, 3, 4, 1);
  const Tensor x = w.input({2, 3, 5, 4}), kernel = w.input({1, 4, 3, 3, 2}), out = poplin::createConvOutput(w.graph, params, "out");
  poplin::convolutionWithOutput(w.graph, x, kernel, out, params, false, w.prog);
  w.show("out", out);
  const Tensor turned = w.graph.addVariable(FLOAT, {1, 3, 4, 3, 2}, VariableMappingMethod::LINEAR, "turned");
  poplin::weightsTransposeChansFlipXY(w.graph, kernel, turned, w.prog);
  w.show("turned", turned);
  const Tensor biases = poplin::createBiases(w.graph, out, params), dz = w.input(out.shape()), scale = w.input({});
  w.into(biases);
  poplin::convolutionBiasUpdate(w.graph, dz, biases, -0.5f, {}, w.prog);
  w.show("biases", popops::add(w.graph, biases, 0.f, w.prog));
  poplin::convolutionBiasUpdate(w.graph, dz, biases, scale, {}, w.prog);
  w.show("biasesLater", biases);
  poplin::convolutionWeightUpdate(w.graph, dz, kernel, x, params, scale, w.prog);
  w.show("kernel", kernel);
  w.run();
}

void others() {
  World w;
  const Tensor scores = popops::createTopKInput(w.graph, FLOAT, {6, 4}, "scores");
  w.into(scores);
  const Tensor labels = integers(w, {6}), right = w.graph.addVariable(UNSIGNED_INT, {1}, VariableMappingMethod::LINEAR, "right");
  for (int i = 0; i < 2; ++i)
    w.prog.add(popnn::calcAccuracy(w.graph, scores, popops::cast(w.graph, labels, UNSIGNED_INT, w.prog), right));
  w.show("right", right);
  const Tensor reference = w.graph.addVariable(FLOAT, {500}, VariableMappingMethod::LINEAR, "reference");
  w.show("logUniform", poprand::logUniform(w.graph, nullptr, 1, reference, FLOAT, 1, 100, w.prog));
  const Tensor rows = w.graph.addVariable(FLOAT, {100, 1}, VariableMappingMethod::LINEAR, "rows");
  const Tensor ones = w.graph.addConstant(FLOAT, {100, 3}, 1.f);
  w.graph.setTileMapping(ones, 0);
  w.show("dropped", poprand::shapedDropout(w.graph, nullptr, 2, ones, rows, 0.5, 2, w.prog));
  const auto sliceable = popops::createHostSliceableTensor(w.graph, FLOAT, {3, 5}, true, "rows");
  w.prog.add(WriteUndef(sliceable.tensor));
  std::stringstream names("hard_sigmoid softmax_stable");
  popnn::NonLinearityType first, second;
  names >> first >> second;
  w.run();
  std::cout << "shapes: " << sliceable.indices.numElements() << " " << sliceable.tensor.numElements() << " " << int(first) << " "
            << int(second) << "\n";
}

/// A trace point of a program's own class: a part of a text, with metadata.
class Scoped : public pvti::Tracepoint {
public:
  Scoped(pvti::TraceChannel *channel, const std::string &label, pvti::Metadata metadata)
      : pvti::Tracepoint(channel, label.data(), 3, &metadata), metadata(std::move(metadata)) {}
  pvti::Metadata metadata;
};

void traces() {
  pvti::TraceChannel channel("mine");
  const Scoped scoped(&channel, "labelled", pvti::createJsonMetadata("{\"value\": 3}"));
  printOwned(std::cout, std::make_unique<Type>(HALF));
  std::cout << "value: " << scoped.metadata.json().substr(10, 1) << "\n";
}

} // namespace

int main(int argc, char **argv) {
  return runNumbers({{"scatter", scatter},
                     {"statistics", statistics},
                     {"ring", ring},
                     {"triangular", triangular},
                     {"convolutions", layersOfConvolutions},
                     {"others", others},
                     {"traces", traces}},
                    argc, argv);
}
