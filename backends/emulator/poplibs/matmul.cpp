// poplin/MatMul.hpp: blocks of the product over the tiles, partial sums over k, then their reduction.
#include <poplin/MatMul.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "../src/halves.hpp"
#include "evaluate.hpp"
#include "product.hpp"
#include "reduce.hpp"

namespace poplibs {

using poplar::core::Direction;

namespace {

/// A block of a product: [m,k] times [k,n].
struct Block {
  std::uint32_t m, k, n;
  Type in, out;
};
template <class Archive> void describe(Archive &a, Block &b) { a(b.m)(b.k)(b.n)(b.in)(b.out); }

/// Halves as floats, each converted once.
const float *asFloats(const Slot &slot, Type type, std::size_t n, std::vector<float> &buffer) {
  if (type == poplar::FLOAT)
    return slot.as<float>();
  buffer.resize(std::max(buffer.size(), n));
  poplar::core::widen(slot.data, buffer.data(), n);
  return buffer.data();
}

void runBlock(const State &state) {
  const Block &b = *static_cast<const Block *>(state.shared);
  const std::size_t m = b.m, k = b.k, n = b.n;
  thread_local std::vector<float> left, right, product;
  const float *x = asFloats(state.slots[1], b.in, m * k, left), *y = asFloats(state.slots[2], b.in, k * n, right);
  if (b.out == poplar::FLOAT)
    return multiplyBlock(x, y, state.slots[0].as<float>(), m, k, n);
  product.resize(std::max(product.size(), m * n));
  multiplyBlock(x, y, product.data(), m, k, n);
  poplar::core::narrow(product.data(), state.slots[0].data, m * n);
}

/// Multiply-accumulates per tile cycle.
double macsPerCycle(const Graph &graph, Type type) {
  const double byArchitecture = graph.getTarget().getTargetArchString() == "ipu1" ? 0.5 : 1;
  return byArchitecture * (type == poplar::HALF ? 64 : 16);
}

std::uint64_t blockCycles(const Graph &graph, const Block &b) {
  // Weights are loaded one column of 16 at a time; every row of the other operand then passes through.
  const double macs = double((b.m + 3) / 4 * 4) * double((b.n + 3) / 4 * 4) * double((b.k + 7) / 8 * 8);
  return sharedCycles(graph, 30) + std::uint64_t(std::ceil(macs / macsPerCycle(graph, b.in)));
}

struct Grid {
  std::size_t groups, m, n, k;
};

std::size_t share(std::size_t size, std::size_t parts, std::size_t i) { return i * size / parts; }
std::size_t most(std::size_t size, std::size_t parts) { return (size + parts - 1) / parts; }

std::vector<std::size_t> cuts(std::size_t size, std::size_t limit) {
  std::vector<std::size_t> result;
  for (std::size_t parts = 1; parts <= std::min(size, limit); parts = std::max(parts + 1, parts * 5 / 4))
    result.push_back(parts);
  return result;
}

/// The grid of blocks with the shortest time on the busiest tile: computing, receiving, and the reduction over k.
Grid chooseGrid(const Graph &graph, std::size_t groups, std::size_t m, std::size_t n, std::size_t k, Type type) {
  const std::size_t tiles = graph.getTarget().getNumTiles();
  const double bytes = double(type.size()), width = graph.getTarget().getExchangeBytesPerCycle();
  Grid best{std::min(groups, tiles), 1, 1, 1};
  double bestCost = std::numeric_limits<double>::infinity();
  const std::size_t perGroup = std::max<std::size_t>(1, tiles / std::max<std::size_t>(1, groups));
  for (std::size_t gm : cuts(m, perGroup))
    for (std::size_t gn : cuts(n, perGroup / gm))
      for (std::size_t gk : cuts(k, perGroup / gm / gn)) {
        const Block block{std::uint32_t(most(m, gm)), std::uint32_t(most(k, gk)), std::uint32_t(most(n, gn)), type, type};
        double cost = double(blockCycles(graph, block)) + bytes * double(block.m * block.k + block.k * block.n) / width;
        if (gk > 1)
          cost += 4.0 * double(most(block.m * block.n, gk)) * double(gk) / width + 300;
        if (cost < bestCost) {
          bestCost = cost;
          best = {best.groups, gm, gn, gk};
        }
      }
  return best;
}

unsigned tileOf(const Graph &graph, const Grid &grid, std::size_t group, std::size_t im, std::size_t in, std::size_t ik) {
  const std::size_t number = ((group * grid.m + im) * grid.n + in) * grid.k + ik;
  return unsigned(number % graph.getTarget().getNumTiles());
}

/// Calls f(group, m, n, k) for the indices of every block.
template <class F> void forEachBlock(std::size_t groups, const Grid &grid, F &&f) {
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t im = 0; im < grid.m; ++im)
      for (std::size_t in = 0; in < grid.n; ++in)
        for (std::size_t ik = 0; ik < grid.k; ++ik)
          f(g, im, in, ik);
}

Tensor blockOf(const Tensor &matrix, std::size_t rowBegin, std::size_t rowEnd, std::size_t begin, std::size_t end) {
  return matrix.slice({rowBegin, begin}, {rowEnd, end}).flatten();
}

/// The partial products, [groups, parts of k, m, n], or the product itself if k is not split.
Tensor multiplyBlocks(Graph &graph, const Tensor &A, const Tensor &B, const Grid &grid, Type out, poplar::program::Sequence &prog,
                      const std::string &name) {
  const std::size_t groups = A.dim(0), m = A.dim(1), k = A.dim(2), n = B.dim(2);
  const Tensor partials = graph.addVariable(grid.k > 1 ? poplar::FLOAT : out, {groups, grid.k, m, n}, name + "/partials");
  const poplar::ComputeSet computeSet = graph.addComputeSet(name + "/Multiply");
  forEachBlock(groups, grid, [&](std::size_t g, std::size_t im, std::size_t in, std::size_t ik) {
    const std::size_t m0 = share(m, grid.m, im), m1 = share(m, grid.m, im + 1);
    const std::size_t n0 = share(n, grid.n, in), n1 = share(n, grid.n, in + 1);
    const std::size_t k0 = share(k, grid.k, ik), k1 = share(k, grid.k, ik + 1);
    const Block block{std::uint32_t(m1 - m0), std::uint32_t(k1 - k0), std::uint32_t(n1 - n0), A.elementType(), partials.elementType()};
    const std::string type = "poplin::MatMulBlock<" + block.in.toString() + "," + block.out.toString() + "," + std::to_string(block.m) + "," +
                             std::to_string(block.k) + "," + std::to_string(block.n) + ">";
    if (!hasType(graph, type))
      builtinType(graph, type,
                  {{"out", Direction::Output, block.out}, {"a", Direction::Input, block.in}, {"b", Direction::Input, block.in}},
                  blockKind, block, 900);
    const Tensor product = blockOf(partials[g][ik], m0, m1, n0, n1);
    const poplar::VertexRef v = graph.addVertex(computeSet, type);
    graph.connect(v["out"], product);
    graph.connect(v["a"], blockOf(A[g], m0, m1, k0, k1));
    graph.connect(v["b"], blockOf(B[g], k0, k1, n0, n1));
    const unsigned tile = tileOf(graph, grid, g, im, in, ik);
    graph.setTileMapping(v, tile);
    graph.setTileMapping(product, tile);
    graph.setPerfEstimate(v, blockCycles(graph, block));
  });
  prog.add(poplar::program::Execute(computeSet));
  return partials;
}

/// Location of the product when partial sums over k are reduced: every block over the tiles that computed it.
void mapProduct(Graph &graph, const Tensor &out, const Grid &grid) {
  const std::size_t groups = out.dim(0), m = out.dim(1), n = out.dim(2);
  forEachBlock(groups, grid, [&](std::size_t g, std::size_t im, std::size_t in, std::size_t ik) {
    const Tensor block = blockOf(out[g], share(m, grid.m, im), share(m, grid.m, im + 1), share(n, grid.n, in), share(n, grid.n, in + 1));
    const std::size_t size = block.numElements();
    graph.setTileMapping(block.slice(share(size, grid.k, ik), share(size, grid.k, ik + 1)), tileOf(graph, grid, g, im, in, ik));
  });
}

void check(const Tensor &A, const Tensor &B, const std::string &name) {
  if (A.rank() != 3 || B.rank() != 3 || A.dim(0) != B.dim(0) || A.dim(2) != B.dim(1))
    throw poputil::poplibs_error(name + ": shapes " + A.shapeToString() + " and " + B.shapeToString() + " cannot be multiplied");
  if (A.elementType() != B.elementType() || !isReal(A.elementType()))
    throw poputil::poplibs_error(name + ": elements of type " + A.elementType().toString() + " and " + B.elementType().toString() +
                                 "; both must be float, or both half");
}

/// [groups, m, k] times [groups, k, n].
Tensor product(Graph &graph, const Tensor &A, const Tensor &B, Type type, poplar::program::Sequence &prog, const std::string &name) {
  requireLibrary(graph, "poplin");
  check(A, B, name);
  if (!isReal(type))
    throw poputil::poplibs_error(name + ": a product of type " + type.toString());
  const std::size_t groups = A.dim(0), m = A.dim(1), k = A.dim(2), n = B.dim(2);
  if (groups * m * n == 0 || k == 0) {
    const Tensor empty = graph.addVariable(type, {groups, m, n}, poplar::VariableMappingMethod::LINEAR, name + "/Out");
    mapTo(graph, popops::expr::Cast(popops::expr::Const(0.f), type), {}, empty, prog, name);
    return empty;
  }
  const Grid grid = chooseGrid(graph, groups, m, n, k, A.elementType());
  const Tensor partials = multiplyBlocks(graph, A, B, grid, type, prog, name);
  if (grid.k == 1)
    return partials.squeeze({1});
  const Tensor out = graph.addVariable(type, {groups, m, n}, name + "/Out");
  mapProduct(graph, out, grid);
  std::vector<poplar::ComputeSet> computeSets;
  // By group, because one stride then leads from row to row.
  for (std::size_t g = 0; g < groups; ++g)
    reduceRows(graph, partials[g].reshape({grid.k, m * n}).transpose(), out[g].flatten(), popops::ReduceParams(popops::Operation::ADD), computeSets, 0,
               name);
  for (const poplar::ComputeSet &computeSet : computeSets)
    prog.add(poplar::program::Execute(computeSet));
  return out;
}

void checkShapes(const std::vector<std::size_t> &a, const std::vector<std::size_t> &b, const std::string &name) {
  if (a.size() != 3 || b.size() != 3 || a[0] != b[0] || a[2] != b[1])
    throw poputil::poplibs_error(name + ": these shapes cannot be multiplied");
}

/// An operand whose blocks are on the tiles where the product reads them first.
Tensor operand(Graph &graph, Type type, const std::vector<std::size_t> &a, const std::vector<std::size_t> &b, bool left, const std::string &name) {
  checkShapes(a, b, name);
  const std::size_t m = a[1], k = a[2], n = b[2];
  const Grid grid = chooseGrid(graph, a[0], m, n, k, type);
  const Tensor result = graph.addVariable(type, left ? a : b, name);
  forEachBlock(a[0], grid, [&](std::size_t g, std::size_t im, std::size_t in, std::size_t ik) {
    const std::size_t copies = left ? grid.n : grid.m, mine = left ? in : im;
    const std::size_t k0 = share(k, grid.k, ik), k1 = share(k, grid.k, ik + 1);
    const Tensor block = left ? blockOf(result[g], share(m, grid.m, im), share(m, grid.m, im + 1), k0, k1)
                              : blockOf(result[g], k0, k1, share(n, grid.n, in), share(n, grid.n, in + 1));
    const std::size_t size = block.numElements();
    graph.setTileMapping(block.slice(share(size, copies, mine), share(size, copies, mine + 1)), tileOf(graph, grid, g, im, in, ik));
  });
  return result;
}

void addTo(Graph &graph, const Tensor &C, const Tensor &term, float k, poplar::program::Sequence &prog, const std::string &name) {
  using namespace popops::expr;
  if (C.shape() != term.shape())
    throw poputil::poplibs_error(name + ": a product of shape " + term.shapeToString() + " is added to " + C.shapeToString());
  if (k == 1)
    mapTo(graph, Add(_1, _2), {C, term}, C, prog, name + "/Acc");
  else
    mapTo(graph, Add(_1, Mul(_2, Const(k))), {C, term}, C, prog, name + "/Acc");
}

void addTo(Graph &graph, const Tensor &C, const Tensor &term, const Tensor &k, poplar::program::Sequence &prog, const std::string &name) {
  using namespace popops::expr;
  mapTo(graph, Add(_1, Mul(_2, Cast(_3, C.elementType()))), {C, term, k}, C, prog, name + "/Acc");
}

std::string nameOf(const poplar::DebugContext &context) { return contextName(context, "matMul"); }

} // namespace

const BuiltinKind blockKind{"poplin.block", &runBlock, &readShared<Block>};

} // namespace poplibs

namespace poplin {

using namespace poplibs;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

Tensor matMul(Graph &graph, const Tensor &A, const Tensor &B, Sequence &prog, const Type &outputType, const DebugContext &context,
              const OptionFlags &, PlanningCache *) {
  Tensor out = product(graph, A.rank() == 1 ? A.expand({0, 0}) : A.expand({0}), B.rank() == 1 ? B.expand({0, 1}) : B.expand({0}), outputType,
                       prog, nameOf(context))[0];
  if (B.rank() == 1)
    out = out.squeeze({1});
  return A.rank() == 1 ? out[0] : out;
}

Tensor matMul(Graph &graph, const Tensor &A, const Tensor &B, Sequence &prog, const DebugContext &context, const OptionFlags &options,
              PlanningCache *cache) {
  return matMul(graph, A, B, prog, A.elementType(), context, options, cache);
}

void matMulWithOutput(Graph &graph, const Tensor &A, const Tensor &B, Tensor &out, Sequence &prog, const DebugContext &context,
                      const OptionFlags &options, PlanningCache *cache) {
  prog.add(Copy(matMul(graph, A, B, prog, out.elementType(), context, options, cache), out, false, context));
}

void matMulAcc(Graph &graph, const Tensor &C, float k, const Tensor &A, const Tensor &B, Sequence &prog, const DebugContext &context,
               const OptionFlags &options, PlanningCache *cache) {
  addTo(graph, C, matMul(graph, A, B, prog, C.elementType(), context, options, cache), k, prog, nameOf(context));
}

void matMulAcc(Graph &graph, const Tensor &C, const Tensor &k, const Tensor &A, const Tensor &B, Sequence &prog, const DebugContext &context,
               const OptionFlags &options, PlanningCache *cache) {
  addTo(graph, C, matMul(graph, A, B, prog, C.elementType(), context, options, cache), k, prog, nameOf(context));
}

Tensor matMulGrouped(Graph &graph, const Tensor &A, const Tensor &B, Sequence &prog, const Type &outputType, const DebugContext &context,
                     const OptionFlags &, PlanningCache *) {
  return product(graph, A, B, outputType, prog, nameOf(context));
}

void matMulGroupedWithOutput(Graph &graph, const Tensor &A, const Tensor &B, Tensor &out, Sequence &prog, const DebugContext &context,
                             const OptionFlags &, PlanningCache *) {
  prog.add(Copy(product(graph, A, B, out.elementType(), prog, nameOf(context)), out, false, context));
}

void matMulGroupedAcc(Graph &graph, const Tensor &C, float k, const Tensor &A, const Tensor &B, Sequence &prog, const DebugContext &context,
                      const OptionFlags &, PlanningCache *) {
  addTo(graph, C, product(graph, A, B, C.elementType(), prog, nameOf(context)), k, prog, nameOf(context));
}

void matMulGroupedAcc(Graph &graph, const Tensor &C, const Tensor &k, const Tensor &A, const Tensor &B, Sequence &prog,
                      const DebugContext &context, const OptionFlags &, PlanningCache *) {
  addTo(graph, C, product(graph, A, B, C.elementType(), prog, nameOf(context)), k, prog, nameOf(context));
}

namespace {
Shape grouped(const Shape &shape, bool isRow) {
  return shape.size() == 1 ? (isRow ? Shape{1, 1, shape[0]} : Shape{1, shape[0], 1}) : Shape{1, shape.at(0), shape.at(1)};
}
} // namespace

Tensor createMatMulInputLHS(Graph &graph, const Type &inputType, const Type &, const Shape &aShape, const Shape &bShape,
                            const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return operand(graph, inputType, grouped(aShape, true), grouped(bShape, false), true, nameOf(context)).reshape(aShape);
}

Tensor createMatMulInputLHS(Graph &graph, const Type &dataType, const Shape &aShape, const Shape &bShape, const DebugContext &context,
                            const OptionFlags &options, PlanningCache *cache) {
  return createMatMulInputLHS(graph, dataType, dataType, aShape, bShape, context, options, cache);
}

Tensor createMatMulInputRHS(Graph &graph, const Type &inputType, const Type &, const Shape &aShape, const Shape &bShape,
                            const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return operand(graph, inputType, grouped(aShape, true), grouped(bShape, false), false, nameOf(context)).reshape(bShape);
}

Tensor createMatMulInputRHS(Graph &graph, const Type &dataType, const Shape &aShape, const Shape &bShape, const DebugContext &context,
                            const OptionFlags &options, PlanningCache *cache) {
  return createMatMulInputRHS(graph, dataType, dataType, aShape, bShape, context, options, cache);
}

Tensor createMatMulGroupedInputLHS(Graph &graph, const Type &inputType, const Type &, const Shape &aShape, const Shape &bShape,
                                   const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return operand(graph, inputType, aShape, bShape, true, nameOf(context));
}

Tensor createMatMulGroupedInputRHS(Graph &graph, const Type &inputType, const Type &, const Shape &aShape, const Shape &bShape,
                                   const DebugContext &context, const OptionFlags &, PlanningCache *) {
  return operand(graph, inputType, aShape, bShape, false, nameOf(context));
}

Tensor createMatMulOutput(Graph &graph, const Type &inputType, const Type &outputType, const Shape &aShape, const Shape &bShape,
                          const DebugContext &context, const OptionFlags &, PlanningCache *) {
  const Shape a = grouped(aShape, true), b = grouped(bShape, false);
  const Tensor out = graph.addVariable(outputType, {1, a[1], b[2]}, nameOf(context));
  mapProduct(graph, out, chooseGrid(graph, 1, a[1], b[2], a[2], inputType));
  return out[0];
}

Tensor createMatMulGroupedOutput(Graph &graph, const Type &inputType, const Type &outputType, const Shape &aShape, const Shape &bShape,
                                 const DebugContext &context, const OptionFlags &, PlanningCache *) {
  checkShapes(aShape, bShape, "matMulGrouped");
  const Tensor out = graph.addVariable(outputType, {aShape[0], aShape[1], bShape[2]}, nameOf(context));
  mapProduct(graph, out, chooseGrid(graph, aShape[0], aShape[1], bShape[2], aShape[2], inputType));
  return out;
}

void matMulGroupedReportPlan(std::ostream &out, const Graph &graph, const Type &inputType, const Type &outputType, const Shape &aShape,
                             const Shape &bShape, const OptionFlags &, PlanningCache *) {
  checkShapes(aShape, bShape, "matMul");
  const std::size_t m = aShape[1], k = aShape[2], n = bShape[2];
  const Grid grid = chooseGrid(graph, aShape[0], m, n, k, inputType);
  const Block block{std::uint32_t(most(m, grid.m)), std::uint32_t(most(k, grid.k)), std::uint32_t(most(n, grid.n)), inputType, outputType};
  out << aShape[0] << " products of " << m << " x " << k << " by " << k << " x " << n << ", " << inputType << " to " << outputType << ": rows in "
      << grid.m << ", columns in " << grid.n << ", terms in " << grid.k << " parts; blocks of up to " << block.m << " x " << block.k << " by "
      << block.k << " x " << block.n << ", " << blockCycles(graph, block) << " cycles each\n";
}

void matMulReportPlan(std::ostream &out, const Graph &graph, const Type &inputType, const Type &outputType, const Shape &aShape,
                      const Shape &bShape, const OptionFlags &options, PlanningCache *cache) {
  matMulGroupedReportPlan(out, graph, inputType, outputType, grouped(aShape, true), grouped(bShape, false), options, cache);
}

Tensor transposeGroupedMatrix(const Tensor &A) { return A.dimShuffle({0, 2, 1}); }

} // namespace poplin
