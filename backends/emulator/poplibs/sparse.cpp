// popsparse: blocks are placed into a dense matrix, which is then multiplied. Results are those of a sparse product;
// cycles and memory are those of the dense one.
#include <popsparse/FullyConnected.hpp>
#include <popsparse/MatMul.hpp>
#include <popsparse/SparsePartitioner.hpp>
#include <popsparse/experimental/BlockSparseMatMul.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Zero.hpp>
#include <poplin/MatMul.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace popsparse {

using namespace poplibs;
using namespace popops::expr;
using detail::Shape;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace detail {

void checkBlocks(const Blocks &blocks, Shape size, Shape block) {
  if (block[0] == 0 || block[1] == 0 || size[0] % block[0] || size[1] % block[1])
    refuse("blocks of " + std::to_string(block[0]) + "x" + std::to_string(block[1]) + " do not fill a matrix of " +
           std::to_string(size[0]) + "x" + std::to_string(size[1]));
  std::set<Shape> seen;
  for (const Shape &at : blocks.at) {
    if (at[0] >= size[0] || at[1] >= size[1] || at[0] % block[0] || at[1] % block[1])
      refuse("a block at row " + std::to_string(at[0]) + ", column " + std::to_string(at[1]) + " of a matrix of " +
             std::to_string(size[0]) + "x" + std::to_string(size[1]) + " in blocks of " + std::to_string(block[0]) + "x" +
             std::to_string(block[1]));
    if (!seen.insert(at).second)
      refuse("two blocks at row " + std::to_string(at[0]) + ", column " + std::to_string(at[1]));
  }
}

} // namespace detail

namespace {

/// A matrix that is temporarily dense: [rows, columns] in blocks.
struct Grid {
  Shape size, block;

  std::size_t across() const { return size[1] / block[1]; }
  std::size_t blocks() const { return size[0] / block[0] * across(); }
  std::size_t elements() const { return block[0] * block[1]; }
  /// [blocks, elements] as [rows, columns], and the inverse.
  Tensor asMatrix(const Tensor &table) const {
    return table.reshape({size[0] / block[0], across(), block[0], block[1]}).dimShuffle({0, 2, 1, 3}).reshape({size[0], size[1]});
  }
  Tensor asTable(const Tensor &matrix) const {
    return matrix.reshape({size[0] / block[0], block[0], across(), block[1]}).dimShuffle({0, 2, 1, 3}).reshape({blocks(), elements()});
  }
};

/// Stored with the tensor that an operation gets: its grid, and the positions of its blocks if these are known.
struct Known : poputil::TensorMetaDataBase {
  Grid grid;
  std::vector<unsigned> places;
  Known(Grid g, std::vector<unsigned> p) : grid(g), places(std::move(p)) {}
};

const Known &knownOf(const poputil::TensorMetaData &data, const std::string &name) {
  if (const auto *known = dynamic_cast<const Known *>(data.getData()))
    return *known;
  throw poputil::poplibs_error(name + ": the sparse operand must be one that popsparse created");
}

void start(Graph &graph, const OptionFlags &options, const std::string &name) {
  requireLibrary(graph, "popsparse");
  addLibrary(graph, "popops");
  addLibrary(graph, "poplin");
  // These select plans and memory; results do not change.
  static const std::set<std::string> known{"availableMemoryProportion",
                                           "doGradAPass",
                                           "doGradWPass",
                                           "enableProfiling",
                                           "enableStructuredRearrangements",
                                           "metaInfoBucketOversizeProportion",
                                           "numberOfPass",
                                           "memoryCycleRatio",
                                           "partitionMethod",
                                           "partialsType",
                                           "planConstraints",
                                           "sharedBuckets",
                                           "useActualWorkerSplitCosts",
                                           "verboseProgress"};
  for (const auto &option : options)
    if (known.count(option.first) == 0)
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
}

Tensor linear(Graph &graph, const Type &type, const std::vector<std::size_t> &shape, const std::string &name) {
  const Tensor t = graph.addVariable(type, shape, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// The block of each pair of indices; for unused entries, one after the last.
Tensor placesOf(Graph &graph, const Tensor &metaInfo, const Grid &grid, Sequence &prog, const std::string &name) {
  const Tensor pairs = metaInfo.reshape({metaInfo.numElements() / 2, 2});
  const Any row = Cast(_1, poplar::UNSIGNED_INT), column = Cast(_2, poplar::UNSIGNED_INT);
  const Any place = Add(Mul(row, Const(unsigned(grid.across()))), column);
  return popops::map(graph, Select(Const(unsigned(grid.blocks())), place, Equal(row, Const(unsigned(dynamic::Partitioner<float>::unused)))),
                     {pairs.slice(0, 1, 1), pairs.slice(1, 2, 1)}, prog, name + "/places");
}

Tensor constantPlaces(Graph &graph, const std::vector<unsigned> &places, const std::string &name) {
  const Tensor t = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {places.size(), 1}, places, name + "/places");
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// A table of all blocks and one more, for blocks without a position.
Tensor tableOf(Graph &graph, const Type &type, const Grid &grid, const std::string &name) {
  return popops::createSliceableTensor(graph, type, {grid.blocks() + 1, grid.elements()}, {0}, {1}, 0, name + "/dense");
}

/// [rows, columns] with the blocks of `values` at `places` ([n, 1]).
Tensor densified(Graph &graph, const Tensor &values, const Tensor &places, const Grid &grid, Sequence &prog, const std::string &name) {
  const Tensor table = tableOf(graph, values.elementType(), grid, name);
  popops::zero(graph, table, prog, name);
  if (places.numElements())
    popops::multiUpdate(graph, table, values.reshape({places.dim(0), 1, grid.elements()}), places, {0}, {1}, prog, name + "/put");
  return grid.asMatrix(table.slice(0, grid.blocks()));
}

/// The blocks of a dense matrix at `places`, one after the other.
Tensor picked(Graph &graph, const Tensor &matrix, const Tensor &places, const Grid &grid, Sequence &prog, const std::string &name) {
  const Tensor table = tableOf(graph, matrix.elementType(), grid, name);
  prog.add(Copy(grid.asTable(matrix), table.slice(0, grid.blocks())));
  popops::zero(graph, table.slice(grid.blocks(), grid.blocks() + 1), prog, name);
  return popops::multiSlice(graph, table, places, {0}, {1}, prog, name + "/get");
}

Tensor multiplied(Graph &graph, const Tensor &a, const Tensor &b, const Type &type, Sequence &prog, const std::string &name) {
  return poplin::matMul(graph, a, b, prog, type, name);
}

void requireMatrix(const Tensor &t, const std::vector<std::size_t> &shape, const std::string &what) {
  if (t.shape() == shape)
    return;
  std::string wanted;
  for (std::size_t d : shape)
    wanted += (wanted.empty() ? "" : ",") + std::to_string(d);
  throw poputil::poplibs_error(what + " has shape " + t.shapeToString() + ", not {" + wanted + "}");
}

/// Memory for values, as whole blocks.
std::size_t room(const dynamic::SparsityParams &sparsity, std::size_t groups, std::size_t rows, std::size_t columns, double values) {
  const std::size_t block = sparsity.blockDimensions[0] * sparsity.blockDimensions[1];
  if (block == 0 || groups == 0 || rows % sparsity.blockDimensions[0] || columns % sparsity.blockDimensions[1])
    detail::refuse("blocks of " + std::to_string(sparsity.blockDimensions[0]) + "x" + std::to_string(sparsity.blockDimensions[1]) +
                   " do not fill a matrix of " + std::to_string(rows) + "x" + std::to_string(columns));
  if (rows / sparsity.blockDimensions[0] >= dynamic::Partitioner<float>::unused ||
      columns / sparsity.blockDimensions[1] >= dynamic::Partitioner<float>::unused)
    detail::refuse("more than 65534 rows or columns of blocks");
  if (values < 0 || values > double(groups * rows * columns))
    detail::refuse(std::to_string(values) + " values that are not zero in a matrix of " + std::to_string(rows) + "x" +
                   std::to_string(columns));
  return std::size_t(std::ceil(values / double(block))) * block;
}

dynamic::SparseTensor createSparse(Graph &graph, const Type &type, const Grid &grid, std::size_t values, std::size_t groups,
                                   const std::string &name) {
  if (groups != 1)
    throw poputil::poplibs_error(name + ": " + std::to_string(groups) + " groups; the emulator takes one");
  if (!isReal(type))
    throw poputil::poplibs_error(name + ": sparse elements of type " + type.toString());
  const Tensor metaInfo = linear(graph, poplar::UNSIGNED_SHORT, {values / grid.elements() * 2}, name + "/metaInfo");
  return {metaInfo, linear(graph, type, {values}, name + "/nzValues"),
          poputil::TensorMetaData(std::make_shared<Known>(grid, std::vector<unsigned>{}))};
}

Grid gridOf(const dynamic::FullyConnectedParams &p) {
  return {{p.getOutputChannelsPerGroup(), p.getInputChannelsPerGroup()}, p.getSparsityParams().blockDimensions};
}

} // namespace

namespace dynamic {

MatMulParams MatMulParams::createWithNzRatio(const SparsityParams &sparsity, double nzRatio, std::size_t groups, std::size_t m,
                                             std::size_t k, std::size_t n) {
  MatMulParams p;
  p.sparsity_ = sparsity;
  p.values_ = room(sparsity, groups, m, k, nzRatio * double(groups * m * k));
  p.groups_ = groups;
  p.m_ = m;
  p.k_ = k;
  p.n_ = n;
  return p;
}
MatMulParams MatMulParams::createWithNumNonZeroValues(const SparsityParams &sparsity, std::size_t values, std::size_t groups, std::size_t m,
                                                      std::size_t k, std::size_t n) {
  MatMulParams p = createWithNzRatio(sparsity, 0, groups, m, k, n);
  p.values_ = room(sparsity, groups, m, k, double(values));
  return p;
}

FullyConnectedParams FullyConnectedParams::createWithNzRatio(const SparsityParams &sparsity, double nzRatio, std::size_t batchSize,
                                                             std::size_t numGroups, std::size_t inputChannels, std::size_t outputChannels) {
  if (numGroups == 0 || inputChannels % numGroups || outputChannels % numGroups)
    detail::refuse(std::to_string(inputChannels) + " inputs and " + std::to_string(outputChannels) + " outputs in " +
                   std::to_string(numGroups) + " groups");
  FullyConnectedParams p;
  p.sparsity_ = sparsity;
  p.batch_ = batchSize;
  p.groups_ = numGroups;
  p.in_ = inputChannels / numGroups;
  p.out_ = outputChannels / numGroups;
  p.values_ = room(sparsity, numGroups, p.out_, p.in_, nzRatio * double(numGroups * p.in_ * p.out_));
  return p;
}
FullyConnectedParams FullyConnectedParams::createWithNumNonZeroValues(const SparsityParams &sparsity, std::size_t values,
                                                                      std::size_t batchSize, std::size_t numGroups,
                                                                      std::size_t inputChannels, std::size_t outputChannels) {
  FullyConnectedParams p = createWithNzRatio(sparsity, 0, batchSize, numGroups, inputChannels, outputChannels);
  p.values_ = room(sparsity, numGroups, p.out_, p.in_, double(values));
  return p;
}

SparseTensor createSparseDenseMatMulLHS(Graph &graph, const Type &type, const MatMulParams &p, const DebugContext &context,
                                        const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "sparse");
  start(graph, options, name);
  return createSparse(graph, type, {{p.getM(), p.getK()}, p.getSparsityParams().blockDimensions}, p.getNumNonZeroValues(), p.getNumGroups(),
                      name);
}

Tensor createSparseDenseMatMulRHS(Graph &graph, const Type &type, const MatMulParams &p, const DebugContext &context,
                                  const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "dense");
  start(graph, options, name);
  return linear(graph, type, {p.getNumGroups(), p.getK(), p.getN()}, name);
}

Tensor sparseDenseMatMul(Graph &graph, const SparseTensor &lhs, const Tensor &rhs, Sequence &prog, bool transposeLHS, bool transposeRHS,
                         const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "sparseDenseMatMul");
  start(graph, options, name);
  const Known &known = knownOf(lhs.getOpMetaData(), name);
  Tensor a =
      densified(graph, lhs.getNzValuesTensor(), placesOf(graph, lhs.getMetaInfoTensor(), known.grid, prog, name), known.grid, prog, name);
  a = transposeLHS ? a.transpose() : a;
  const Tensor b = transposeRHS && rhs.rank() == 3 ? rhs.dimShuffle({0, 2, 1}) : rhs;
  requireMatrix(b, {1, a.dim(1), b.dim(b.rank() - 1)}, name + ": the dense operand");
  return multiplied(graph, a, b[0], rhs.elementType(), prog, name).expand({0});
}

SparseTensor createFullyConnectedWeights(Graph &graph, const Type &type, const FullyConnectedParams &p, const DebugContext &context,
                                         const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "sparseWeights");
  start(graph, options, name);
  return createSparse(graph, type, gridOf(p), p.getNumNonZeroValues(), p.getNumGroups(), name);
}

Tensor createFullyConnectedInput(Graph &graph, const Type &type, const FullyConnectedParams &p, const DebugContext &context,
                                 const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "sparseInput");
  start(graph, options, name);
  return linear(graph, type, {p.getBatchSize(), p.getInputChannels()}, name);
}

namespace {

/// The weights, [outputs, inputs].
Tensor denseWeights(Graph &graph, const SparseTensor &weights, const FullyConnectedParams &p, Sequence &prog, const std::string &name) {
  const Grid grid = gridOf(p);
  requireMatrix(weights.getNzValuesTensor(), {p.getNumNonZeroValues()}, name + ": the tensor of values");
  return densified(graph, weights.getNzValuesTensor(), placesOf(graph, weights.getMetaInfoTensor(), grid, prog, name), grid, prog, name);
}

} // namespace

Tensor fullyConnectedFwd(Graph &graph, const SparseTensor &weights, const Tensor &activations, const FullyConnectedParams &p,
                         Sequence &prog, const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "fullyConnectedFwd");
  start(graph, options, name);
  requireMatrix(activations, {p.getBatchSize(), p.getInputChannels()}, name + ": the tensor of activations");
  return multiplied(graph, activations, denseWeights(graph, weights, p, prog, name).transpose(), activations.elementType(), prog, name);
}

Tensor fullyConnectedGradA(Graph &graph, const SparseTensor &weights, const Tensor &gradients, const FullyConnectedParams &p,
                           Sequence &prog, const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "fullyConnectedGradA");
  start(graph, options, name);
  requireMatrix(gradients, {p.getBatchSize(), p.getOutputChannels()}, name + ": the tensor of gradients");
  return multiplied(graph, gradients, denseWeights(graph, weights, p, prog, name), gradients.elementType(), prog, name);
}

Tensor fullyConnectedSparseGradW(Graph &graph, const Tensor metaInfo, const Tensor &gradA, const Tensor &activations,
                                 const FullyConnectedParams &p, Sequence &prog, const DebugContext &context, const OptionFlags &options,
                                 PlanningCache *) {
  const std::string name = contextName(context, "fullyConnectedGradW");
  start(graph, options, name);
  requireMatrix(gradA, {p.getBatchSize(), p.getOutputChannels()}, name + ": the tensor of gradients");
  requireMatrix(activations, {p.getBatchSize(), p.getInputChannels()}, name + ": the tensor of activations");
  const Grid grid = gridOf(p);
  const Tensor dense = multiplied(graph, gradA.transpose(), activations, activations.elementType(), prog, name);
  return picked(graph, dense, placesOf(graph, metaInfo, grid, prog, name), grid, prog, name).flatten();
}

} // namespace dynamic

namespace static_ {
namespace detail {

SparseTensor createSparse(Graph &graph, const Type &type, const MatMulParams &params, const Places &places, const DebugContext &context,
                          const OptionFlags &options) {
  const std::string name = contextName(context, "sparse");
  start(graph, options, name);
  if (params.getNumGroups() != 1)
    throw poputil::poplibs_error(name + ": " + std::to_string(params.getNumGroups()) + " groups; the emulator takes one");
  if (!isReal(type))
    throw poputil::poplibs_error(name + ": sparse elements of type " + type.toString());
  const Grid grid{{places.rows, places.columns}, places.block};
  std::vector<unsigned> numbers;
  for (const auto &at : places.blocks)
    numbers.push_back(unsigned(at[0] / grid.block[0] * grid.across() + at[1] / grid.block[1]));
  const Tensor values = linear(graph, type, {numbers.size() * grid.elements()}, name + "/nzValues");
  return SparseTensor(values, poputil::TensorMetaData(std::make_shared<Known>(grid, numbers)));
}

Tensor createDense(Graph &graph, const Type &type, const MatMulParams &p, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "dense");
  start(graph, options, name);
  return p.isTransposed() ? linear(graph, type, {p.getNumGroups(), p.getN(), p.getK()}, name)
                          : linear(graph, type, {p.getNumGroups(), p.getK(), p.getN()}, name);
}

} // namespace detail

namespace {

Tensor denseOf(Graph &graph, const SparseTensor &sparse, bool transpose, Sequence &prog, const std::string &name) {
  const Known &known = knownOf(sparse.getOpMetaData(), name);
  const Tensor dense = densified(graph, sparse.getNzValuesTensor(), constantPlaces(graph, known.places, name), known.grid, prog, name);
  return transpose ? dense.transpose() : dense;
}

Tensor other(const Tensor &t, bool transpose) { return transpose && t.rank() == 3 ? t.dimShuffle({0, 2, 1}) : t; }

} // namespace

Tensor sparseDenseMatMul(Graph &graph, const SparseTensor &lhs, const Tensor &rhs, Sequence &prog, bool transposeLHS, bool transposeRHS,
                         const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "sparseDenseMatMul");
  start(graph, options, name);
  const Tensor a = denseOf(graph, lhs, transposeLHS, prog, name), b = other(rhs, transposeRHS);
  requireMatrix(b, {1, a.dim(1), b.dim(b.rank() - 1)}, name + ": the dense operand");
  return multiplied(graph, a, b[0], rhs.elementType(), prog, name).expand({0});
}

Tensor denseSparseMatMul(Graph &graph, const Tensor &lhs, const SparseTensor &rhs, Sequence &prog, bool transposeLHS, bool transposeRHS,
                         const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "denseSparseMatMul");
  start(graph, options, name);
  const Tensor a = other(lhs, transposeLHS), b = denseOf(graph, rhs, transposeRHS, prog, name);
  requireMatrix(a, {1, a.rank() == 3 ? a.dim(1) : 0, b.dim(0)}, name + ": the dense operand");
  return multiplied(graph, a[0], b, lhs.elementType(), prog, name).expand({0});
}

} // namespace static_

namespace experimental {

namespace {

std::array<std::size_t, 3> positive(const std::array<int, 3> &numbers, const char *what) {
  std::array<std::size_t, 3> found{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (numbers[i] <= 0)
      detail::refuse(std::string(what) + " " + std::to_string(numbers[i]));
    found[i] = std::size_t(numbers[i]);
  }
  return found;
}

/// The grid of the matrix that the mask describes.
Grid maskedGrid(const BSMatMulParams &p) {
  if (p.resultIsSparse)
    return {{p.size[0], p.size[2]}, {p.block[0], p.block[2]}};
  return p.transposed ? Grid{{p.size[2], p.size[1]}, {p.block[2], p.block[1]}} : Grid{{p.size[1], p.size[2]}, {p.block[1], p.block[2]}};
}

void check(const BSMatMulParams &p) {
  for (std::size_t i = 0; i < 3; ++i)
    if (p.size[i] % p.block[i])
      detail::refuse("blocks of " + std::to_string(p.block[i]) + " do not fill a dimension of " + std::to_string(p.size[i]));
  if (p.groups == 0 || p.mask.size() != p.groups * maskedGrid(p).blocks())
    detail::refuse("a mask of " + std::to_string(p.mask.size()) + " numbers for " + std::to_string(p.groups) + " groups of " +
                   std::to_string(maskedGrid(p).blocks()) + " blocks");
}

/// Numbers of the nonzero blocks of one group.
std::vector<unsigned> blocksOf(const BSMatMulParams &p, std::size_t group) {
  const std::size_t n = maskedGrid(p).blocks();
  std::vector<unsigned> found;
  for (std::size_t i = 0; i < n; ++i)
    if (p.mask[group * n + i])
      found.push_back(unsigned(i));
  return found;
}

std::size_t allBlocks(const BSMatMulParams &p) {
  return std::size_t(std::count_if(p.mask.begin(), p.mask.end(), [](unsigned char c) { return c != 0; }));
}

} // namespace

BSMatMulParams::BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize,
                               const std::vector<unsigned char> &rhsSparsity, bool rhsNeedTranspose, Type inDataType, Type outDataType,
                               Type, unsigned numGroups)
    : size(positive(dim, "a dimension of")), block(positive(blockSize, "a block of")), mask(rhsSparsity), resultIsSparse(false),
      transposed(rhsNeedTranspose), in(inDataType), out(outDataType), groups(numGroups) {
  check(*this);
}

BSMatMulParams::BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize,
                               const std::vector<unsigned char> &resSparsity, Type inDataType, Type outDataType, Type,
                               SubBlockMask subBlockMask, unsigned numGroups)
    : size(positive(dim, "a dimension of")), block(positive(blockSize, "a block of")), mask(resSparsity), resultIsSparse(true),
      transposed(false), in(inDataType), out(outDataType), groups(numGroups) {
  if (subBlockMask != SubBlockMask::None)
    detail::refuse("masks inside of blocks are not emulated");
  check(*this);
}

Tensor createBSMatMulInputLHS(Graph &graph, const BSMatMulParams &p, const DebugContext &context, const OptionFlags &options) {
  start(graph, options, contextName(context, "bsMatMul"));
  return linear(graph, p.in, {p.groups * p.size[0], p.size[1]}, contextName(context, "bsMatMul") + "/lhs");
}

Tensor createBSMatMulInputRHS(Graph &graph, const BSMatMulParams &p, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "bsMatMul");
  start(graph, options, name);
  return p.resultIsSparse ? linear(graph, p.in, {p.groups * p.size[1], p.size[2]}, name + "/rhs")
                          : linear(graph, p.in, {allBlocks(p), maskedGrid(p).elements()}, name + "/rhs");
}

Tensor bsMatMul(Graph &graph, const BSMatMulParams &p, Sequence &prog, const Tensor &lhs, const Tensor &rhs, const OptionFlags &options,
                const DebugContext &context) {
  const std::string name = contextName(context, "bsMatMul");
  start(graph, options, name);
  const Grid grid = maskedGrid(p);
  requireMatrix(lhs, {p.groups * p.size[0], p.size[1]}, name + ": the left operand");
  if (p.resultIsSparse)
    requireMatrix(rhs, {p.groups * p.size[1], p.size[2]}, name + ": the right operand");
  else
    requireMatrix(rhs, {allBlocks(p), grid.elements()}, name + ": the list of blocks");
  std::vector<Tensor> results;
  std::size_t first = 0;
  for (std::size_t g = 0; g < p.groups; ++g) {
    const Tensor a = lhs.slice(g * p.size[0], (g + 1) * p.size[0]);
    const std::vector<unsigned> blocks = blocksOf(p, g);
    if (p.resultIsSparse) {
      const Tensor dense = multiplied(graph, a, rhs.slice(g * p.size[1], (g + 1) * p.size[1]), p.out, prog, name);
      if (!blocks.empty())
        results.push_back(picked(graph, dense, constantPlaces(graph, blocks, name), grid, prog, name).squeeze({1}));
      continue;
    }
    const Tensor dense = densified(graph, rhs.slice(first, first + blocks.size()), constantPlaces(graph, blocks, name), grid, prog, name);
    results.push_back(multiplied(graph, a, p.transposed ? dense.transpose() : dense, p.out, prog, name));
    first += blocks.size();
  }
  if (results.empty())
    detail::refuse("a result without blocks");
  return poplar::concat(results);
}

} // namespace experimental
} // namespace popsparse
