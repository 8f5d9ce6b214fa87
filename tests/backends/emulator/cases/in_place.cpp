// Forms of functions of PopLibs that write to tensors of the program, or whose steps the program puts together itself.
#include "numbers.hpp"

#include <popnn/BatchNorm.hpp>
#include <popnn/LogSoftmax.hpp>
#include <popnn/Loss.hpp>
#include <popnn/Rnn.hpp>
#include <poplin/Cholesky.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/Norms.hpp>
#include <popops/AllTrue.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Sort.hpp>
#include <poprand/RandomGen.hpp>
#include <poputil/Broadcast.hpp>
#include <poputil/Util.hpp>

namespace {

void products() {
  World w(chosenType());
  const std::size_t g = number(), m = number(), k = number(), n = number();
  const Tensor a = w.input({g, m, k}), b = w.input({g, k, n}), c = w.input({g, m, n});
  Tensor single = poplin::createMatMulOutput(w.graph, w.type, {m, k}, {k, n}, "single");
  Tensor grouped = poplin::createMatMulGroupedOutput(w.graph, w.type, w.type, {g, m, k}, {g, k, n}, "grouped");
  poplin::matMulWithOutput(w.graph, a[0], b[0], single, w.prog);
  poplin::matMulGroupedWithOutput(w.graph, a, b, grouped, w.prog);
  w.show("single", single);
  w.show("grouped", grouped);
  const Tensor sum = poputil::duplicate(w.graph, c, w.prog), factor = w.graph.addConstant(FLOAT, {}, -2.f);
  w.graph.setTileMapping(factor, 0);
  poplin::matMulGroupedAcc(w.graph, sum, 0.5f, a, b, w.prog);
  w.show("half", sum);
  const Tensor scaled = poputil::duplicate(w.graph, c, w.prog);
  poplin::matMulGroupedAcc(w.graph, scaled, factor, a, b, w.prog);
  w.show("scaled", scaled);
  w.show("turned", poplin::transposeGroupedMatrix(a));
  w.run();
}

/// Rows of a table at places that repeat: only for the maximum, where the order does not matter.
void updates() {
  World w(chosenType());
  const std::size_t rows = number(), columns = number(), n = number();
  const auto places = [&] { return popops::cast(w.graph, w.input({n, 1}), UNSIGNED_INT, w.prog); };
  const Tensor table = w.input({rows, columns}), values = w.input({n, 1, columns}), grouped = w.input({2, rows, columns}),
               more = w.input({2, n, 1, columns});
  const Tensor distinct = places(), repeated = places(), offset = popops::cast(w.graph, w.input({1}), UNSIGNED_INT, w.prog);
  const Tensor both = poplar::concat(distinct.expand({0}), distinct.expand({0}));
  const auto on = [&](const Tensor &t, auto &&change) {
    const Tensor copy = poputil::duplicate(w.graph, t, w.prog);
    change(copy);
    return copy;
  };
  const popops::SlicePlan plan;
  w.show("set", on(table, [&](const Tensor &t) { popops::multiUpdate(w.graph, t, values, distinct, {0}, {1}, w.prog); }));
  w.show("max", on(table, [&](const Tensor &t) { popops::multiUpdateMax(w.graph, t, values, repeated, {0}, {1}, w.prog, plan, {}); }));
  w.show("sets", on(grouped, [&](const Tensor &t) { popops::groupedMultiUpdate(w.graph, t, more, both, {0}, {1}, w.prog, plan, {}); }));
  w.show("maxima", on(grouped, [&](const Tensor &t) { popops::groupedMultiUpdateMax(w.graph, t, more, both, {0}, {1}, w.prog, plan, {}); }));
  const Tensor slice = popops::createDynamicSliceOutput(w.graph, table, offset, {0}, {2}, "slice");
  popops::dynamicSliceWithOutput(w.graph, slice, table, offset, {0}, {2}, w.prog);
  w.show("slice", slice);
  w.run();
}

void elements() {
  using namespace popops::expr;
  World w(chosenType());
  const std::size_t m = number(), n = number();
  const Tensor x = w.input({m, n});
  Tensor row = w.input({n}), column = w.input({m, 1});
  const auto copy = [&] { return poputil::duplicate(w.graph, x, w.prog); };
  for (unsigned dim : {0u, 1u}) {
    const Tensor sorted = copy();
    popops::sortInPlace(w.graph, sorted, dim, w.prog);
    w.show("sorted" + std::to_string(dim), sorted);
  }
  const Tensor logs = copy(), mapped = copy(), positive = popops::gt(w.graph, x, -10.f, w.prog), some = popops::gt(w.graph, x, 0.f, w.prog);
  popnn::logSoftmaxInPlace(w.graph, logs, w.prog);
  w.show("logs", logs);
  popops::mapWithOutput(w.graph, Tanh(_1 * Const(2.f)) - _2, {x, row}, mapped, w.prog);
  w.show("mapped", mapped);
  w.show("argMax", popnn::argMax(w.graph, x, w.prog));
  w.show("argMin", popnn::argMin(w.graph, x, w.prog));
  w.show("all", popops::allTrue(w.graph, positive.flatten(), w.prog).reshape({1}));
  w.show("some", popops::allTrue(w.graph, some.flatten(), w.prog).reshape({1}));
  Tensor wide = x;
  std::cout << "can: " << poputil::canBroadcastToMatch(row, x) << " " << poputil::canBroadcastToMatch(row, column) << " "
            << poputil::canBroadcastToMatch(x, w.graph.addVariable(FLOAT, {m + 1, n}, "other")) << std::endl;
  poputil::broadcastToMatch(row, column, wide);
  w.show("row", row);
  w.show("column", column);
  w.run();
}

void choleskyInPlace() {
  World w;
  const std::size_t g = number(), n = number(), lower = number();
  const Tensor a = poplin::createCholeskyInput(w.graph, FLOAT, {g, n, n}, lower, "a");
  w.into(a);
  poplin::choleskyInPlace(w.graph, a, lower, w.prog);
  w.show("factor", a);
  w.run();
}

/// Statistics, whitening and the three parts of the gradient, as programs chain them.
void normSteps() {
  World w;
  const std::size_t unbiased = number(), stable = number();
  const Shape shape = numbers();
  const Tensor x = w.input(shape), dy = w.input(shape), gamma = w.input({shape[1]}), beta = w.input({shape[1]});
  const auto [mean, deviation] = poplin::normStatistics(w.graph, x, 1e-3f, w.prog, unbiased, stable);
  const Tensor whitened = poplin::normWhiten(w.graph, x, mean, deviation, w.prog);
  w.show("mean", mean);
  w.show("deviation", deviation);
  w.show("whitened", whitened);
  w.show("same", popnn::bn::batchNormWhiten(w.graph, x, mean, deviation, w.prog));
  w.show("y", poplin::normalise(w.graph, whitened, gamma, beta, w.prog));
  const auto [dGamma, dBeta] = poplin::normParamGradients(w.graph, whitened, dy, w.prog);
  w.show("dGamma", dGamma);
  w.show("dBeta", dBeta);
  w.show("dx", poplin::normStatisticsGradients(w.graph, whitened, poplin::normGradients(w.graph, dy, gamma, w.prog), deviation, w.prog));
  w.run();
}

/// The rows of a recurrence one step later, and what dropout keeps under equal and different seeds.
void stepsAndDropout() {
  World w;
  const std::size_t steps = number(), batch = number(), size = number();
  const popnn::rnn::RnnParams params(FLOAT, batch, steps, {size, size});
  const Tensor base = w.input({steps, batch, size}), single = w.input({1, batch, size});
  w.show("shifted", popnn::rnn::shiftRnnTensor(w.graph, params, base, single, w.prog, 1));
  const Tensor seed = w.graph.addConstant(UNSIGNED_INT, {2}, {3u, 4u}), ones = w.graph.addConstant(FLOAT, {4000}, 1.f);
  for (const Tensor &t : {seed, ones})
    poputil::mapTensorLinearly(w.graph, t);
  for (unsigned modifier : {1u, 1u, 2u})
    w.show("kept" + std::to_string(w.shown.size()), poprand::dropout(w.graph, &seed, modifier, ones, ones, 0.75, 4, w.prog));
  w.run();
}

} // namespace

int main(int argc, char **argv) {
  return runNumbers({{"products", products},
                     {"updates", updates},
                     {"elements", elements},
                     {"choleskyInPlace", choleskyInPlace},
                     {"normSteps", normSteps},
                     {"stepsAndDropout", stepsAndDropout}},
                    argc, argv);
}
