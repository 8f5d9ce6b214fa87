// popsparse: sparse matrices as dense ones for one operation, in blocks.
#include "sparse_blocks.hpp"

#include <set>

#include <poplin/MatMul.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

namespace popsparse::detail {

using namespace poplibs;
using poplar::OptionFlags;
using poplar::program::Copy;

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

Tensor constantPlaces(Graph &graph, const std::vector<unsigned> &places, const std::string &name) {
  const Tensor t = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {places.size(), 1}, places, name + "/places");
  poputil::mapTensorLinearly(graph, t);
  return t;
}

namespace {

/// A table of all blocks and one more, for blocks without a position.
Tensor tableOf(Graph &graph, const Type &type, const Grid &grid, const std::string &name) {
  return popops::createSliceableTensor(graph, type, {grid.blocks() + 1, grid.elements()}, {0}, {1}, 0, name + "/dense");
}

} // namespace

Tensor densified(Graph &graph, const Tensor &values, const Tensor &places, const Grid &grid, Sequence &prog, const std::string &name) {
  const Tensor table = tableOf(graph, values.elementType(), grid, name);
  popops::zero(graph, table, prog, name);
  if (places.numElements())
    popops::multiUpdate(graph, table, values.reshape({places.dim(0), 1, grid.elements()}), places, {0}, {1}, prog, name + "/put");
  return grid.asMatrix(table.slice(0, grid.blocks()));
}

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

} // namespace popsparse::detail
