// Other forms of common functions: other types of arguments, several results, more options. Inputs are read from stdin.
#include "numbers.hpp"

#include <popnn/Loss.hpp>
#include <popnn/NonLinearity.hpp>
#include <poplin/Convolution.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Gather.hpp>
#include <popops/Loop.hpp>
#include <popops/Pad.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/TopK.hpp>
#include <popops/Zero.hpp>

namespace {

using namespace popops::expr;

void gathers() {
  World w;
  const Shape in = numbers(), indices = numbers();
  const std::size_t vectorDim = number();
  const Shape offsetDims = numbers(), sizes = numbers(), collapsed = numbers();
  const std::vector<unsigned> starts = numbers<unsigned>();
  const Tensor input = popops::createGatherInput(w.graph, FLOAT, in, sizes, starts, "input");
  w.into(input);
  const Tensor rows = popops::cast(w.graph, w.input(indices), UNSIGNED_INT, w.prog);
  const poplar::OptionFlags options{{"remapOutOfBoundIndices", number() ? "true" : "false"}};
  const Tensor out = popops::gather(w.graph, input, rows, vectorDim, offsetDims, sizes, collapsed, starts, w.prog, "gather", options);
  std::cout << "shape:";
  for (std::size_t d : out.shape())
    std::cout << " " << d;
  std::cout << std::endl;
  w.show("out", out);
  w.run();
}

void pads() {
  World w;
  const Tensor t = w.input({2, 3}), value = w.input({1});
  w.show("all", popops::pad(w.graph, t, {1, -1}, {0, 2}, value));
  w.show("one", popops::pad(w.graph, t, 2, 1, 0, value[0]));
  const Tensor loose = popops::pad(w.graph, t, {0, 0}, {0, 1}, 7.f, popops::padding::MappingMethod::NONE);
  bool complete = true;
  w.graph.getTileMapping(loose.slice(3, 4, 1), &complete);
  w.graph.setTileMapping(loose.slice(3, 4, 1), 4);
  w.show("constant", loose);
  const Tensor edge = popops::pad(w.graph, t, 2, 1, 1, 7.f, popops::padding::MappingMethod::EDGE);
  const auto tiles = [&](std::size_t column) { return w.graph.getTileMapping(edge.slice(column, column + 1, 1)); };
  const Tensor zero = popops::pad(w.graph, t, 0, 3, 0, 7.f, popops::padding::MappingMethod::ZERO);
  std::cout << "tiles: " << complete << " " << (tiles(0) == tiles(2) && tiles(1) == tiles(2) && tiles(5) == tiles(4)) << " "
            << w.graph.getTileMapping(zero.slice(2, 5))[0].size() << std::endl;
  w.show("edge", edge);
  w.run();
}

void scaled() {
  World w;
  using popops::ScaledAddSpecialisation;
  const Tensor start = w.input({5}), b = w.input({5}), x = w.input({1}), y = w.input({1});
  const auto copy = [&] { return popops::add(w.graph, start, 0.f, w.prog); };
  std::vector<Tensor> made;
  for (int i = 0; i < 5; ++i)
    made.push_back(copy());
  popops::scaledAddTo(w.graph, made[0], 0.25f, b, 2.f, w.prog, ScaledAddSpecialisation::X_MINUS_AX_PLUS_BY);
  popops::scaledAddTo(w.graph, made[1], x, b, y, w.prog, ScaledAddSpecialisation::X_MINUS_AX_PLUS_BY);
  popops::scaledAddTo(w.graph, made[2], x, b, y, w.prog, ScaledAddSpecialisation::DEFAULT);
  popops::scaledSubtractFrom(w.graph, made[3], 0.25f, b, 2.f, w.prog);
  popops::scaledSubtractFrom(w.graph, made[4], x, b, y, w.prog);
  w.show("made", concat(made));
  w.run();
}

void several() {
  World w;
  const Tensor a = w.input({4}), b = w.input({4});
  const std::vector<Tensor> made = popops::map(w.graph, {Add(_1, _2), Mul(_1, _2)}, {a, b}, w.prog);
  w.show("sum", made[0]);
  w.show("product", popops::add(w.graph, made[1], 0.f, w.prog));
  popops::mapInPlace(w.graph, {Sub(_1, _2), Add(_1, _2)}, {a, b}, w.prog);
  w.show("a", a);
  w.show("b", b);
  const Tensor epsilon = w.graph.addConstant(FLOAT, {}, 0.5f);
  w.graph.setTileMapping(epsilon, 0);
  const Tensor deviation = popops::varianceToInvStdDev(w.graph, popops::abs(w.graph, b, w.prog), 0.5f, w.prog, HALF, "deviation");
  std::cout << "half: " << (deviation.elementType() == HALF) << std::endl;
  w.show("deviation", deviation);
  w.show("variance", popops::invStdDevToVariance(w.graph, popops::cast(w.graph, deviation, FLOAT, w.prog), epsilon, w.prog, FLOAT));
  w.run();
}

void zeros() {
  World w;
  const Tensor t = w.input({8}), u = w.input({8}), v = w.input({8});
  const ComputeSet work = w.graph.addComputeSet("work");
  popops::zero(w.graph, t, {{1, 3}, {6, 7}}, 0, work);
  popops::zero(w.graph, u, 0, work);
  popops::zero(w.graph, v, std::vector<std::vector<Interval>>{{{0, 2}}, {}, {{7, 8}}}, work);
  w.prog.add(Execute(work));
  w.show("made", concat({t, u, v}));
  w.run();
}

void updates() {
  World w;
  const Tensor t = w.input({4, 2}), s = w.input({3, 1, 2}), scale = w.input({});
  popops::multiUpdateAdd(w.graph, t, s, {2, 0, 2}, scale, 0, w.prog, "update");
  w.show("t", t);
  const Tensor slices = popops::createSliceTensor(w.graph, FLOAT, {4, 6}, {0}, {1}, 3, popops::SlicePlan(), {}, "slices");
  const Tensor top = popops::createTopKInput(w.graph, FLOAT, {3, 5}, popops::TopKParams(2, true, popops::SortOrder::NONE), "top");
  std::cout << "shapes: " << slices.dim(0) << " " << slices.dim(1) << " " << slices.dim(2) << " " << top.dim(1) << std::endl;
  const Tensor rounds = popops::cast(w.graph, w.input({1}), INT, w.prog), sum = w.input({1});
  Sequence body;
  popops::mapInPlace(w.graph, Add(_1, Const(1.f)), {sum}, body);
  w.prog.add(popops::countedForLoop(w.graph, 2, rounds, 3, body));
  w.show("sum", sum);
  w.run();
}

void losses() {
  World w;
  const Tensor outputs = w.input({3, 4}), expected = popops::cast(w.graph, w.input({3}), UNSIGNED_INT, w.prog);
  const Tensor deltasScale = w.input({}), outputScale = w.input({});
  const Tensor loss = w.graph.addVariable(FLOAT, {3}, VariableMappingMethod::LINEAR, "loss");
  const Tensor deltas = w.graph.addVariable(FLOAT, {3, 4}, VariableMappingMethod::LINEAR, "deltas");
  const Tensor right = w.graph.addVariable(UNSIGNED_INT, {1}, VariableMappingMethod::LINEAR, "right");
  w.prog.add(popnn::calcLoss(w.graph, outputs, expected, loss, deltas, deltasScale, outputScale, right, popnn::CROSS_ENTROPY_LOSS));
  w.show("loss", loss);
  w.show("deltas", deltas);
  w.show("right", right);
  w.run();
}

void activations() {
  World w;
  const Tensor t = w.input({6});
  float scaling = 0;
  w.show("swish", popnn::swish(w.graph, t, w.prog));
  w.show("softmax", popnn::scaledSoftmaxStable(w.graph, t, scaling, w.prog));
  ComputeSet work = w.graph.addComputeSet("work"), back = w.graph.addComputeSet("back");
  const Tensor u = popops::add(w.graph, t, 0.f, w.prog);
  popnn::nonLinearityInPlace(w.graph, popnn::NonLinearityType::TANH, u, work);
  const Tensor g = popnn::nonLinearityInputGradient(w.graph, popnn::NonLinearityType::TANH, u, t, back);
  w.prog.add(Execute(work));
  w.prog.add(Execute(back));
  w.show("tanh", u);
  w.show("gradient", g);
  w.run();
  std::cout << "scaling: " << scaling << "\n";
  popnn::nonLinearityInPlace(w.graph, popnn::NonLinearityType::SOFTMAX, u, work, "last");
}

void plans() {
  World w;
  std::ostringstream text, more;
  poplin::reportPlanInfo(text, w.graph, poplin::ConvParams(FLOAT, 2, {6}, {3}, 4, 5, 1));
  poplin::reportWeightUpdatePlanInfo(more, w.graph, poplin::ConvParams(FLOAT, 2, {6}, {3}, 4, 5, 1));
  std::cout << text.str() << more.str();
}

} // namespace

int main(int argc, char **argv) {
  return runNumbers({{"gathers", gathers},
                     {"pads", pads},
                     {"scaled", scaled},
                     {"several", several},
                     {"zeros", zeros},
                     {"updates", updates},
                     {"losses", losses},
                     {"activations", activations},
                     {"plans", plans}},
                    argc, argv);
}
