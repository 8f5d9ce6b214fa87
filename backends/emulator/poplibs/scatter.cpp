// popops: scatter, circular buffers, tensors for the host, histograms.
#include <popops/Scatter.hpp>

#include <algorithm>
#include <numeric>

#include <popops/Cast.hpp>
#include <popops/CircBuf.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Gather.hpp>
#include <popops/GatherStatistics.hpp>
#include <popops/HostSliceTensor.hpp>
#include <popops/Loop.hpp>
#include <popops/Reduce.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"

namespace popops {

using namespace poplibs;
using namespace expr;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;

namespace {

/// The dimensions of an operand that a scatter uses.
struct Windows {
  std::vector<unsigned> updateDims;
  Shape insertedDims;
  std::vector<unsigned> operandDims;
};

template <class T> bool holds(const std::vector<T> &list, std::size_t value) {
  return std::find(list.begin(), list.end(), T(value)) != list.end();
}

[[noreturn]] void misfit(const std::string &name, const Tensor &operand, const Tensor &indices, const Tensor &updates) {
  throw poputil::poplibs_error(name + ": indices of shape " + indices.shapeToString() + " and updates of shape " + updates.shapeToString() +
                               " do not fit an operand of shape " + operand.shapeToString());
}

/// Indices as [n, places]: one row for each window.
Tensor rowsOf(const Tensor &indices, std::size_t vectorDim, const std::string &name) {
  if (vectorDim > indices.rank())
    throw poputil::poplibs_error(name + ": dimension " + std::to_string(vectorDim) + " of indices of shape " + indices.shapeToString());
  const Tensor last =
      vectorDim == indices.rank() ? indices.expand({indices.rank()}) : indices.dimRoll(unsigned(vectorDim), indices.rank() - 1);
  const std::size_t places = last.dim(last.rank() - 1);
  return last.reshape({last.numElements() / std::max<std::size_t>(1, places), places});
}

/// Updates as [n, window...], where the window has every dimension of the operand.
Tensor windowsOf(const Tensor &operand, const Tensor &updates, const Windows &w, Shape &window) {
  std::vector<unsigned> order;
  std::size_t n = 1;
  for (unsigned d = 0; d < updates.rank(); ++d)
    if (!holds(w.updateDims, d)) {
      order.push_back(d);
      n *= updates.dim(d);
    }
  auto next = w.updateDims.begin();
  for (std::size_t d = 0; d < operand.rank(); ++d)
    if (holds(w.insertedDims, d)) {
      window.push_back(1);
    } else {
      order.push_back(*next);
      window.push_back(updates.dim(*next++));
    }
  Shape shape{n};
  shape.insert(shape.end(), window.begin(), window.end());
  return updates.dimShuffle(order).reshape(shape);
}

bool fits(const Tensor &operand, const Tensor &rows, const Tensor &updates, const Windows &w) {
  if (w.updateDims.size() + w.insertedDims.size() != operand.rank() || rows.dim(1) != w.operandDims.size())
    return false;
  for (unsigned d : w.updateDims)
    if (d >= updates.rank())
      return false;
  std::vector<unsigned> dims = w.operandDims;
  std::sort(dims.begin(), dims.end());
  return dims.empty() || (dims.back() < operand.rank() && std::adjacent_find(dims.begin(), dims.end()) == dims.end());
}

/// One BOOL: whether the window at `offset` is inside.
Tensor liesInside(Graph &graph, const Tensor &offset, const Shape &last, Sequence &prog, const std::string &name) {
  const Tensor limits = graph.addConstant<std::size_t>(poplar::UNSIGNED_INT, {last.size()}, last, name + "/limits");
  poputil::mapTensorLinearly(graph, limits);
  const Tensor inside = map(graph, Lte(_1, _2), {offset, limits}, prog, name + "/inside");
  return reduce(graph, inside, poplar::BOOL, {0}, ReduceParams(Operation::LOGICAL_AND), prog, name + "/all");
}

void scatterAll(Graph &graph, const Tensor &operand, const Tensor &indices, const Tensor &updates, std::size_t vectorDim, const Windows &w,
                const UpdateComputationFunc *combine, Sequence &prog, const std::string &name, const OptionFlags &options) {
  requireLibrary(graph, "popops");
  for (const auto &option : options)
    throw poplar::invalid_option(name + ": option '" + option.first + "' is not emulated");
  const Tensor rows = rowsOf(indices, vectorDim, name);
  if (!fits(operand, rows, updates, w))
    misfit(name, operand, indices, updates);
  Shape window;
  const Tensor values = windowsOf(operand, updates, w, window);
  if (values.dim(0) != rows.dim(0) || operand.elementType() != updates.elementType())
    misfit(name, operand, indices, updates);
  Tensor place = operand;
  Shape dims, sizes, last;
  for (std::size_t d = 0; d < operand.rank(); ++d) {
    if (window[d] > operand.dim(d))
      misfit(name, operand, indices, updates);
    if (!holds(w.operandDims, d))
      place = place.slice(0, window[d], unsigned(d));
  }
  for (unsigned d : w.operandDims) {
    dims.push_back(d);
    sizes.push_back(window[d]);
    last.push_back(operand.dim(d) - window[d]);
  }
  if (values.numElements() == 0)
    return;
  const Tensor places = cast(graph, rows, poplar::UNSIGNED_INT, prog, name + "/places");
  prog.add(countedLoop(
      graph, rows.dim(0),
      [&](const Tensor &counter) {
        Sequence round(name);
        const Tensor offset = dynamicSlice(graph, places, counter, {0}, {1}, round, name)[0];
        Tensor update = dynamicSlice(graph, values, counter, {0}, {1}, round, name)[0];
        Tensor old = dynamicSlice(graph, place, offset, dims, sizes, round, name);
        const Tensor made = combine ? (*combine)(graph, old, update, round) : update;
        if (made.shape() != old.shape())
          throw poputil::poplibs_error(name + ": the update computation gives shape " + made.shapeToString() + " for windows of " +
                                       old.shapeToString());
        // A window elsewhere gets its own elements back.
        const Tensor kept = map(graph, Select(_1, _2, _3), {made, old, liesInside(graph, offset, last, round, name)}, round, name);
        dynamicUpdate(graph, place, kept, offset, dims, sizes, round, name);
        return round;
      },
      name));
}

} // namespace

Tensor createGatherInput(Graph &graph, const Type &type, const Shape &inputShape, const Shape &sliceSizes, std::vector<unsigned> startIndexMap,
                         const DebugContext &context) {
  Shape dims, sizes;
  for (unsigned d : startIndexMap) {
    dims.push_back(d);
    sizes.push_back(sliceSizes.at(d));
  }
  return createSliceableTensor(graph, type, inputShape, dims, sizes, 0, context);
}

namespace {

/// Whether starts outside become 0.
bool remapsOthers(const OptionFlags &options, const std::string &name) {
  bool remaps = false;
  for (const auto &option : options)
    if (option.first == "remapOutOfBoundIndices")
      remaps = option.second == "true";
    else if (option.first != "paddingIndexUsed")
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
  return remaps;
}

/// [slices, batch dimensions and dimensions of slices] in the order of the result of a gather.
Tensor inGatheredOrder(const Tensor &slices, Shape batch, const Shape &offsetDims, const Shape &kept) {
  Shape shape = batch;
  shape.insert(shape.end(), kept.begin(), kept.end());
  std::vector<unsigned> order;
  unsigned nextBatch = 0, nextOffset = unsigned(batch.size());
  for (unsigned d = 0; d < shape.size(); ++d)
    order.push_back(holds(offsetDims, d) ? nextOffset++ : nextBatch++);
  return slices.reshape(shape).dimShuffle(order);
}

} // namespace

Tensor gather(Graph &graph, const Tensor &input, const Tensor &indices, std::size_t indexVectorDim, const Shape &offsetDims,
              const Shape &sliceSizes, const Shape &collapsedSliceDims, const std::vector<unsigned> &startIndexMap, Sequence &prog,
              const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "gather");
  requireLibrary(graph, "popops");
  const bool remaps = remapsOthers(options, name);
  const Tensor rows = rowsOf(indices, indexVectorDim, name);
  Shape batch = indices.shape(), kept, dims, sizes, all{rows.dim(0)};
  if (indexVectorDim < batch.size())
    batch.erase(batch.begin() + std::ptrdiff_t(indexVectorDim));
  std::vector<unsigned> last;
  Tensor place = input;
  const bool fits = sliceSizes.size() == input.rank() && rows.dim(1) == startIndexMap.size() &&
                    collapsedSliceDims.size() + offsetDims.size() == input.rank();
  for (std::size_t d = 0; fits && d < input.rank(); ++d) {
    const bool moves = holds(startIndexMap, d), collapses = holds(collapsedSliceDims, d);
    if (sliceSizes[d] > input.dim(d) || (collapses && sliceSizes[d] != 1))
      throw poputil::poplibs_error(name + ": a slice of " + std::to_string(sliceSizes[d]) + " in dimension " + std::to_string(d) +
                                   " of a tensor of shape " + input.shapeToString());
    if (!collapses)
      kept.push_back(sliceSizes[d]);
    if (!moves)
      place = place.slice(0, sliceSizes[d], unsigned(d));
    all.push_back(sliceSizes[d]);
  }
  if (!fits)
    throw poputil::poplibs_error(name + ": indices of shape " + indices.shapeToString() + " do not fit a tensor of shape " +
                                 input.shapeToString());
  for (unsigned d : startIndexMap) {
    dims.push_back(d);
    sizes.push_back(sliceSizes.at(d));
    last.push_back(unsigned(input.dim(d) - sliceSizes[d]));
  }
  const Tensor slices = createSliceableTensor(graph, input.elementType(), all, {0}, {1}, 0, name + "/slices");
  const Tensor limits = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {1, last.size()}, last, name + "/limits");
  poputil::mapTensorLinearly(graph, limits);
  const Any place0 = Cast(_1, poplar::UNSIGNED_INT);
  const Any inside = remaps ? Any(Select(place0, Const(0u), Lte(place0, _2))) : Any(Min(place0, _2));
  const Tensor starts = map(graph, inside, {rows, limits}, prog, name + "/starts");
  prog.add(countedLoop(
      graph, rows.dim(0),
      [&](const Tensor &counter) {
        Sequence round(name);
        const Tensor offset = dynamicSlice(graph, starts, counter, {0}, {1}, round, name)[0];
        dynamicUpdate(graph, slices, dynamicSlice(graph, place, offset, dims, sizes, round, name).expand({0}), counter, {0}, {1}, round, name);
        return round;
      },
      name));
  return inGatheredOrder(slices, batch, offsetDims, kept);
}

void scatter(Graph &graph, const Tensor &operand, const Tensor &indices, const Tensor &updates, std::size_t indexVectorDim,
             std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  scatterAll(graph, operand, indices, updates, indexVectorDim, {updateWindowDims, insertWindowDims, scatterDimsToOperandDims}, nullptr,
             prog, contextName(context, "scatter"), options);
}

void scatter(Graph &graph, const Tensor &operand, const Tensor &indices, const Tensor &updates, std::size_t indexVectorDim,
             std::vector<unsigned> updateWindowDims, std::vector<std::size_t> insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, UpdateComputationFunc &updateComputation, Sequence &prog,
             const DebugContext &context, const OptionFlags &options) {
  scatterAll(graph, operand, indices, updates, indexVectorDim, {updateWindowDims, insertWindowDims, scatterDimsToOperandDims},
             &updateComputation, prog, contextName(context, "scatter"), options);
}

CircBuf::CircBuf(Graph &graph, const Type &dataType, unsigned size, const Shape &shape, const DebugContext &context)
    : graph_(graph), size_(size) {
  const std::string name = contextName(context, "circBuf");
  requireLibrary(graph, "popops");
  if (size == 0)
    throw poputil::poplibs_error(name + ": a circular buffer of no tensors");
  Shape all{size};
  all.insert(all.end(), shape.begin(), shape.end());
  history_ = createSliceableTensor(graph, dataType, all, {0}, {1}, 0, name);
  index_ = graph.addVariable(poplar::UNSIGNED_INT, {1}, name + "/index");
  graph.setTileMapping(index_, 0);
  graph.setInitialValue(index_[0], 0u);
}

Tensor CircBuf::prev(unsigned i, Sequence &seq, const DebugContext &context) {
  const std::string name = contextName(context, "circBuf");
  if (i >= size_)
    throw poputil::poplibs_error(name + ": element " + std::to_string(i) + " of " + std::to_string(size_));
  const Tensor at = map(graph_, Rem(Add(_1, Const(size_ - i)), Const(size_)), {index_}, seq, name + "/place");
  return dynamicSlice(graph_, history_, at, {0}, {1}, seq, name + "/prev").squeeze({0});
}

void CircBuf::add(Tensor t, Sequence &seq, const DebugContext &context) {
  const std::string name = contextName(context, "circBuf");
  mapInPlace(graph_, Rem(Add(_1, Const(1u)), Const(size_)), {index_}, seq, name + "/next");
  dynamicUpdate(graph_, history_, t.expand({0}), index_, {0}, {1}, seq, name + "/add");
}

Graph::TileToTensorMapping CircBuf::getTileMapping() { return graph_.getTileMapping(history_[0]); }

Tensor createHostTransferableTensor(Graph &graph, const Type &type, const Shape &shape, bool isRead, std::size_t offset,
                                    const DebugContext &context) {
  const Tensor t = graph.addVariable(type, shape, contextName(context, isRead ? "hostRead" : "hostWritten"));
  const std::size_t tiles = graph.getTarget().getNumTiles(), each = 128;
  poputil::mapTensorLinearlyWithOffset(graph, t, unsigned(offset / each % tiles));
  return t;
}
Tensor createHostTransferableTensor(Graph &graph, const Type &type, const Shape &shape, bool isRead, const DebugContext &context) {
  return createHostTransferableTensor(graph, type, shape, isRead, 0, context);
}
IndicesAndTensor createHostSliceableTensor(Graph &graph, const Type &type, const Shape &shape, bool isRead, std::size_t offset,
                                           const DebugContext &context) {
  const std::string name = contextName(context, "hostSliceable");
  if (shape.size() != 2)
    throw poputil::poplibs_error(name + ": rows and their elements are two dimensions, not " + std::to_string(shape.size()));
  return {createHostTransferableTensor(graph, poplar::UNSIGNED_INT, {shape[0]}, isRead, offset, name + "/indices"),
          createHostTransferableTensor(graph, type, shape, isRead, offset, name)};
}
IndicesAndTensor createHostSliceableTensor(Graph &graph, const Type &type, const Shape &shape, bool isRead, const DebugContext &context) {
  return createHostSliceableTensor(graph, type, shape, isRead, 0, context);
}

namespace {

/// Whether counts are floats.
bool countsAreFloats(const OptionFlags &options, const std::string &name) {
  bool floats = false, either = false;
  for (const auto &option : options) {
    if (option.first != "useFloatArithmetic" && option.first != "useFloatArithmeticWithUnsignedIntOutput")
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
    const bool on = option.second == "true";
    if (on && either)
      throw poplar::invalid_option(name + ": both options about floats are set");
    either = either || on;
    floats = floats || (on && option.first == "useFloatArithmetic");
  }
  return floats;
}

} // namespace

void histogram(Graph &graph, const Tensor &input, Tensor &output, bool updateOutput, const Tensor &levels, bool absoluteOfInput,
               Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "histogram");
  requireLibrary(graph, "popops");
  countsAreFloats(options, name);
  const std::size_t n = levels.numElements();
  const Type type = output.elementType();
  if (output.numElements() != n + 1 || n == 0 || levels.elementType() != input.elementType() ||
      (type != poplar::UNSIGNED_INT && type != poplar::FLOAT))
    throw poputil::poplibs_error(name + ": an output of type " + type.toString() + " and shape " + output.shapeToString() +
                                 " for levels of type " + levels.elementType().toString() + " and shape " + levels.shapeToString());
  const Tensor flat = input.flatten(), limits = levels.flatten(), counts = output.flatten();
  const Any x = absoluteOfInput ? Any(Abs(_1)) : Any(_1);
  for (std::size_t i = 0; i <= n; ++i) {
    const Tensor low = limits[i ? i - 1 : 0], high = limits[i < n ? i : n - 1];
    const Any inside = i == 0 ? Any(Lt(x, _3)) : i == n ? Any(Gte(x, _2)) : Any(And(Gte(x, _2), Lt(x, _3)));
    const Tensor hits = map(graph, Cast(inside, type), {flat, low, high}, prog, name + "/inside");
    reduceWithOutput(graph, hits, counts[i], {0}, ReduceParams(Operation::ADD, updateOutput), prog, name + "/count");
  }
}

Tensor histogram(Graph &graph, const Tensor &input, const Tensor &levels, bool absoluteOfInput, Sequence &prog, const DebugContext &context,
                 const OptionFlags &options) {
  const std::string name = contextName(context, "histogram");
  const Type type = countsAreFloats(options, name) ? poplar::FLOAT : poplar::UNSIGNED_INT;
  Tensor output = graph.addVariable(type, {levels.numElements() + 1}, name + "/Out");
  poputil::mapTensorLinearly(graph, output);
  histogram(graph, input, output, false, levels, absoluteOfInput, prog, context, options);
  return output;
}

} // namespace popops
