// popsparse: blocks are placed into a dense matrix, which is then multiplied. Results are those of a sparse product;
// cycles and memory are those of the dense one.
#include <popsparse/Embedding.hpp>
#include <popsparse/FullyConnected.hpp>
#include <popsparse/MatMul.hpp>
#include <popsparse/SparsePartitioner.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Zero.hpp>
#include <poplin/MatMul.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"
#include "sparse_blocks.hpp"

namespace popsparse {

using namespace poplibs;
using namespace popops::expr;
using namespace detail;
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

/// The block of each pair of indices; for unused entries, one after the last.
Tensor placesOf(Graph &graph, const Tensor &metaInfo, const Grid &grid, Sequence &prog, const std::string &name) {
  const Tensor pairs = metaInfo.reshape({metaInfo.numElements() / 2, 2});
  const Any row = Cast(_1, poplar::UNSIGNED_INT), column = Cast(_2, poplar::UNSIGNED_INT);
  const Any place = Add(Mul(row, Const(unsigned(grid.across()))), column);
  return popops::map(graph, Select(Const(unsigned(grid.blocks())), place, Equal(row, Const(unsigned(dynamic::Partitioner<float>::unused)))),
                     {pairs.slice(0, 1, 1), pairs.slice(1, 2, 1)}, prog, name + "/places");
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

std::tuple<unsigned, unsigned, unsigned> fullyConnectedDenseGradWSerialSplits(const Graph &, const Type &, const FullyConnectedParams &,
                                                                              const OptionFlags &, PlanningCache *) {
  return std::make_tuple(1u, 1u, 1u);
}

Tensor createIndicesTensor(Graph &graph, const FullyConnectedParams &, std::size_t numIndices, const OptionFlags &options,
                           const DebugContext &context) {
  const std::string name = contextName(context, "indices");
  start(graph, options, name);
  return linear(graph, poplar::UNSIGNED_INT, {numIndices}, name);
}

Tensor createSliceTensor(Graph &graph, const Type &dataType, const FullyConnectedParams &p, std::size_t numIndices,
                         const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "slices");
  start(graph, options, name);
  return linear(graph, dataType, {numIndices, p.getInputChannels()}, name);
}

Tensor embeddingSlice(Graph &graph, const SparseTensor &t, const Tensor &indices, Sequence &prog, const FullyConnectedParams &p,
                      const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "embeddingSlice");
  start(graph, options, name);
  requireMatrix(indices, {indices.numElements()}, name + ": the tensor of indices");
  return popops::multiSlice(graph, denseWeights(graph, t, p, prog, name), indices.expand({1}), {0}, {1}, prog, name).squeeze({1});
}

void embeddingUpdateAdd(Graph &graph, const SparseTensor &t, const Tensor &slices, const Tensor &indices, const Tensor &scale, Sequence &prog,
                        const FullyConnectedParams &p, const DebugContext &context, const OptionFlags &options, PlanningCache *) {
  const std::string name = contextName(context, "embeddingUpdate");
  start(graph, options, name);
  requireMatrix(indices, {indices.numElements()}, name + ": the tensor of indices");
  requireMatrix(slices, {indices.numElements(), p.getInputChannels()}, name + ": the tensor of slices");
  const Grid grid = gridOf(p);
  const Tensor values = t.getNzValuesTensor(), deltas = linear(graph, values.elementType(), {grid.size[0], grid.size[1]}, name + "/deltas");
  popops::zero(graph, deltas, prog, name);
  popops::multiUpdateAdd(graph, deltas, slices.expand({1}), indices.expand({1}), scale, {0}, {1}, prog, name);
  const Tensor places = placesOf(graph, t.getMetaInfoTensor(), grid, prog, name);
  popops::scaledAddTo(graph, values, picked(graph, deltas, places, grid, prog, name).flatten(), 1.f, prog, name);
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
} // namespace popsparse
