// popsparse: softmax of block-sparse matrices. Rows with equally many blocks are computed together, as rows of one dense matrix.
#include <popsparse/experimental/BlockSparse.hpp>

#include <map>

#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "sparse_blocks.hpp"

namespace popsparse::experimental {

using namespace poplibs;
using namespace detail;
using namespace popops::expr;
using poplar::DebugContext;
using poplar::FLOAT;

namespace {

/// A block, by its number in the list of nonzero ones, and its column of blocks.
struct Block {
  std::size_t number, column;
};
/// The nonzero blocks of rows of blocks that have equally many, by row.
using Rows = std::map<std::size_t, std::vector<Block>>;

Grid gridOf(const std::array<int, 2> &dim, const std::array<int, 2> &block, const std::vector<unsigned char> &sparsity, const std::string &name) {
  Grid grid{};
  for (std::size_t i = 0; i < 2; ++i) {
    if (dim[i] <= 0 || block[i] <= 0 || dim[i] % block[i])
      throw poputil::poplibs_error(name + ": blocks of " + std::to_string(block[i]) + " do not fill a dimension of " + std::to_string(dim[i]));
    grid.size[i] = std::size_t(dim[i]);
    grid.block[i] = std::size_t(block[i]);
  }
  if (sparsity.size() != grid.blocks())
    throw poputil::poplibs_error(name + ": a mask of " + std::to_string(sparsity.size()) + " numbers for " + std::to_string(grid.blocks()) +
                                 " blocks");
  return grid;
}

/// By number of blocks per row.
std::map<std::size_t, Rows> rowsOf(const Grid &grid, const std::vector<unsigned char> &sparsity) {
  std::map<std::size_t, Rows> found;
  std::size_t number = 0;
  for (std::size_t row = 0; row < grid.blocks() / grid.across(); ++row) {
    std::vector<Block> blocks;
    for (std::size_t column = 0; column < grid.across(); ++column)
      if (sparsity[row * grid.across() + column])
        blocks.push_back({number++, column});
    if (!blocks.empty())
      found[blocks.size()][row] = std::move(blocks);
  }
  return found;
}

/// [rows, elements of their blocks]
Tensor dense(const Tensor &values, const Rows &rows, const Grid &grid) {
  std::vector<Tensor> strips;
  for (const auto &[row, blocks] : rows) {
    std::vector<Tensor> parts;
    for (const Block &b : blocks)
      parts.push_back(values[b.number].reshape({grid.block[0], grid.block[1]}));
    strips.push_back(poplar::concat(parts, 1));
  }
  return poplar::concat(strips);
}

/// 1 for the elements that the mask keeps.
Tensor keptIn(Graph &graph, const Rows &rows, const Grid &grid, SubBlockMask mask, std::size_t groupRows, const std::string &name) {
  std::vector<float> kept;
  for (const auto &[row, blocks] : rows)
    for (std::size_t i = 0; i < grid.block[0]; ++i)
      for (const Block &b : blocks)
        for (std::size_t j = 0; j < grid.block[1]; ++j) {
          const std::size_t r = (row * grid.block[0] + i) % groupRows, c = b.column * grid.block[1] + j;
          kept.push_back(mask == SubBlockMask::None || r == c || (r > c) == (mask == SubBlockMask::ZeroUpperTriangle));
        }
  const std::size_t width = rows.begin()->second.size() * grid.block[1];
  const Tensor t = graph.addConstant<float>(FLOAT, {kept.size() / width, width}, kept, name + "/kept");
  poputil::mapTensorLinearly(graph, t);
  return t;
}

Tensor ofRows(Graph &graph, const Tensor &t, popops::Operation op, Sequence &prog, const std::string &name) {
  return popops::reduce(graph, t, FLOAT, {1}, op, prog, name).expand({1});
}

Tensor floats(Graph &graph, const Expr &expression, const std::vector<Tensor> &tensors, Sequence &prog, const std::string &name) {
  const Tensor out = outputLike(graph, FLOAT, tensors[0].shape(), {tensors[0]}, name);
  mapTo(graph, expression, tensors, out, prog, name);
  return out;
}

void softmaxTo(Graph &graph, const Tensor &in, const Tensor &out, const Grid &grid, const std::vector<unsigned char> &sparsity,
               SubBlockMask mask, unsigned numGroups, Sequence &prog, const std::string &name) {
  if (numGroups == 0 || grid.size[0] % numGroups)
    throw poputil::poplibs_error(name + ": " + std::to_string(grid.size[0]) + " rows are not " + std::to_string(numGroups) + " equal groups");
  for (const auto &[count, rows] : rowsOf(grid, sparsity)) {
    const Tensor t = dense(in, rows, grid), kept = keptIn(graph, rows, grid, mask, grid.size[0] / numGroups, name);
    const Any x = popops::expr::Cast(_1, FLOAT), isKept = Gt(_2, Const(0.f));
    const Tensor most = ofRows(graph, floats(graph, Select(x, Const(-3.4e38f), isKept), {t, kept}, prog, name + "/Masked"),
                               popops::Operation::MAX, prog, name + "/Max");
    const Tensor powers = floats(graph, Select(Exp(Sub(x, _3)), Const(0.f), isKept), {t, kept, most}, prog, name + "/Exp");
    // The largest element's power is 1, so only a row without any has a smaller sum; it stays zero.
    const Tensor sum = ofRows(graph, powers, popops::Operation::ADD, prog, name + "/Sum");
    mapTo(graph, popops::expr::Cast(Divide(_1, Max(_2, Const(1.f))), in.elementType()), {powers, sum}, dense(out, rows, grid), prog,
          name + "/Divide");
  }
}

/// Checks the arguments of a function and returns the grid of its blocks.
Grid checked(Graph &graph, const std::vector<Tensor> &lists, const std::array<int, 2> &dim, const std::array<int, 2> &blockSize,
             const std::vector<unsigned char> &sparsity, const std::string &name) {
  start(graph, {}, name);
  const Grid grid = gridOf(dim, blockSize, sparsity, name);
  std::size_t blocks = 0;
  for (unsigned char c : sparsity)
    blocks += c != 0;
  for (const Tensor &t : lists)
    requireMatrix(t, {blocks, grid.elements()}, name + ": the list of blocks");
  return grid;
}

} // namespace

Tensor bsSoftmax(Graph &graph, Tensor t, const std::array<int, 2> &dim, const std::array<int, 2> &blockSize,
                 const std::vector<unsigned char> &sparsity, SubBlockMask mask, unsigned numGroups, Sequence &prog,
                 const DebugContext &context) {
  const std::string name = contextName(context, "bsSoftmax");
  const Grid grid = checked(graph, {t}, dim, blockSize, sparsity, name);
  const Tensor out = linear(graph, t.elementType(), t.shape(), name + "/Out");
  softmaxTo(graph, t, out, grid, sparsity, mask, numGroups, prog, name);
  return out;
}

void bsSoftmaxInPlace(Graph &graph, Tensor t, const std::array<int, 2> &dim, const std::array<int, 2> &blockSize,
                      const std::vector<unsigned char> &sparsity, SubBlockMask mask, unsigned numGroups, Sequence &prog,
                      const DebugContext &context) {
  const std::string name = contextName(context, "bsSoftmax");
  const Grid grid = checked(graph, {t}, dim, blockSize, sparsity, name);
  softmaxTo(graph, t, t, grid, sparsity, mask, numGroups, prog, name);
}

Tensor bsSoftmaxGrad(Graph &graph, Tensor sparseOut, Tensor sparseOutGrad, const std::array<int, 2> &dim,
                     const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity, Sequence &prog,
                     const DebugContext &context) {
  const std::string name = contextName(context, "bsSoftmaxGrad");
  const Grid grid = checked(graph, {sparseOut, sparseOutGrad}, dim, blockSize, sparsity, name);
  const Tensor result = linear(graph, sparseOut.elementType(), sparseOut.shape(), name + "/Out");
  for (const auto &[count, rows] : rowsOf(grid, sparsity)) {
    const Tensor y = dense(sparseOut, rows, grid), gradient = dense(sparseOutGrad, rows, grid);
    const Any p = popops::expr::Cast(_1, FLOAT), g = popops::expr::Cast(_2, FLOAT);
    const Tensor sum = ofRows(graph, floats(graph, Mul(p, g), {y, gradient}, prog, name + "/Mul"), popops::Operation::ADD, prog, name + "/Sum");
    mapTo(graph, popops::expr::Cast(Mul(p, Sub(g, _3)), result.elementType()), {y, gradient, sum}, dense(result, rows, grid), prog,
          name + "/Sub");
  }
  return result;
}

} // namespace popsparse::experimental
