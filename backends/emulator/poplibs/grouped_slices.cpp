// Slices and updates of several tensors at once, group by group.
#include <popops/DynamicSlice.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"

namespace popops {

using namespace poplibs;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Sequence;

namespace {

using Sizes = std::vector<std::size_t>;

/// One tensor for each group, stacked.
template <class Make> Tensor stacked(std::size_t groups, Make make) {
  if (groups == 0)
    throw poputil::poplibs_error("slices of no groups, or at no offsets");
  std::vector<Tensor> parts;
  for (std::size_t g = 0; g < groups; ++g)
    parts.push_back(make(g).expand({0}));
  return poplar::concat(parts);
}

void requireGroups(const std::string &what, const Tensor &t, const std::vector<Tensor> &others) {
  for (const Tensor &other : others)
    if (t.rank() == 0 || other.rank() == 0 || other.dim(0) != t.dim(0))
      throw poputil::poplibs_error(what + ": tensors of shapes " + t.shapeToString() + " and " + other.shapeToString() +
                                   " have different numbers of groups");
}

} // namespace

Tensor multiSlice(Graph &graph, const Tensor &t, poplar::ArrayRef<unsigned> offsets, std::size_t dim, Sequence &prog, const DebugContext &context,
                  const OptionFlags &) {
  const auto slice = [&](std::size_t i) { return t.slice(offsets[i], offsets[i] + std::size_t(1), unsigned(dim)); };
  return duplicate(graph, stacked(offsets.size(), slice), prog, contextName(context, "multiSlice"));
}

Tensor createGroupedSliceableTensor(Graph &graph, const poplar::Type &type, std::size_t groupSize, const Sizes &shape, const Sizes &dims,
                                    const Sizes &sizes, const SlicePlan &plan, const OptionFlags &options, const DebugContext &context) {
  return stacked(groupSize, [&](std::size_t) { return createSliceableTensor(graph, type, shape, dims, sizes, plan, options, context); });
}

Tensor createGroupedSliceTensor(Graph &graph, const poplar::Type &type, std::size_t groupSize, const Sizes &shape, const Sizes &dims, const Sizes &sizes,
                                std::size_t numIndices, const SlicePlan &, const OptionFlags &, const DebugContext &context) {
  Sizes slice = shape;
  for (std::size_t i = 0; i < dims.size(); ++i)
    slice.at(dims[i]) = sizes.at(i);
  slice.insert(slice.begin(), numIndices);
  return stacked(groupSize, [&](std::size_t) { return outputLike(graph, type, slice, {}, contextName(context, "slices")); });
}

Tensor createGroupedIndicesTensor(Graph &graph, std::size_t groupSize, const Sizes &dims, std::size_t numIndices, const SlicePlan &plan,
                                  const OptionFlags &options, const DebugContext &context) {
  return stacked(groupSize, [&](std::size_t) { return createIndicesTensor(graph, dims, numIndices, plan, options, context); });
}

Tensor groupedMultiSlice(Graph &graph, const Tensor &t, const Tensor &offsets, const Sizes &dims, const Sizes &sizes, Sequence &prog,
                         const SlicePlan &plan, const OptionFlags &options, const DebugContext &context) {
  requireGroups("groupedMultiSlice", t, {offsets});
  return stacked(t.dim(0), [&](std::size_t g) { return multiSlice(graph, t[g], offsets[g], dims, sizes, prog, plan, options, context); });
}

void groupedMultiUpdate(Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offsets, const Sizes &dims, const Sizes &sizes, Sequence &prog,
                        const SlicePlan &plan, const OptionFlags &options, const DebugContext &context) {
  requireGroups("groupedMultiUpdate", t, {s, offsets});
  for (std::size_t g = 0; g < t.dim(0); ++g)
    multiUpdate(graph, t[g], s[g], offsets[g], dims, sizes, prog, plan, options, context);
}

void groupedMultiUpdateAdd(Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offsets, const Tensor &scale, const Sizes &dims,
                           const Sizes &sizes, Sequence &prog, const SlicePlan &plan, const OptionFlags &options, const DebugContext &context) {
  requireGroups("groupedMultiUpdateAdd", t, {s, offsets});
  for (std::size_t g = 0; g < t.dim(0); ++g)
    multiUpdateAdd(graph, t[g], s[g], offsets[g], scale, dims, sizes, prog, plan, options, context);
}

void groupedMultiUpdateMax(Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offsets, const Sizes &dims, const Sizes &sizes, Sequence &prog,
                           const SlicePlan &plan, const OptionFlags &options, const DebugContext &context) {
  requireGroups("groupedMultiUpdateMax", t, {s, offsets});
  for (std::size_t g = 0; g < t.dim(0); ++g)
    multiUpdateMax(graph, t[g], s[g], offsets[g], dims, sizes, prog, plan, options, context);
}

void groupedMultiUpdateMul(Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offsets, const Sizes &dims, const Sizes &sizes, Sequence &prog,
                           const SlicePlan &plan, const OptionFlags &options, const DebugContext &context) {
  requireGroups("groupedMultiUpdateMul", t, {s, offsets});
  for (std::size_t g = 0; g < t.dim(0); ++g)
    multiUpdateMul(graph, t[g], s[g], offsets[g], dims, sizes, prog, plan, options, context);
}

void multiUpdateAdd(Graph &graph, const Tensor &t, const Tensor &sIn, poplar::ArrayRef<unsigned> offsets, const Tensor &scale,
                    std::size_t dim, Sequence &prog, const DebugContext &context, const OptionFlags &) {
  const std::vector<unsigned> places(offsets.begin(), offsets.end());
  const Tensor rows = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {places.size(), 1}, places, contextName(context, "offsets"));
  graph.setTileMapping(rows, 0);
  multiUpdateAdd(graph, t, sIn, rows, scale, {dim}, {1}, prog, context);
}

Tensor createSliceTensor(Graph &graph, const Type &type, const Sizes &shape, const Sizes &dims, const Sizes &sizes, std::size_t numIndices,
                         const SlicePlan &, const OptionFlags &, const DebugContext &context) {
  Sizes all = shape, sliced{0};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    all[dims[i]] = sizes[i];
    sliced.push_back(dims[i] + 1);
  }
  all.insert(all.begin(), numIndices);
  return createSliceableTensor(graph, type, all, sliced, {}, 0, context);
}

Graph::TileToTensorMapping getSliceMapping(Graph &graph, const Tensor &t, const Sizes &dims, const Sizes &sizes) {
  Tensor first = t;
  for (std::size_t i = 0; i < dims.size(); ++i)
    first = first.slice(0, sizes[i], unsigned(dims[i]));
  return graph.getTileMapping(first);
}

Tensor createDynamicSliceOutput(Graph &graph, const Tensor &t, const Tensor &, const Sizes &dims, const Sizes &sizes, const DebugContext &context,
                                const OptionFlags &) {
  Sizes shape = t.shape();
  for (std::size_t i = 0; i < dims.size(); ++i)
    shape[dims[i]] = sizes[i];
  const Tensor output = graph.addVariable(t.elementType(), shape, context);
  graph.setTileMapping(output, getSliceMapping(graph, t, dims, sizes));
  return output;
}

Tensor createSliceableTensorFromSlice(Graph &graph, const Tensor &s, const Sizes &dims, const Sizes &numSlices, const DebugContext &context) {
  if (dims.size() != numSlices.size())
    throw poputil::poplibs_error("createSliceableTensorFromSlice: " + std::to_string(dims.size()) + " dimensions and " +
                                 std::to_string(numSlices.size()) + " numbers of slices");
  std::size_t slices = 1;
  for (std::size_t n : numSlices)
    slices *= n;
  Sizes shape = s.shape();
  shape.insert(shape.begin(), slices);
  const Tensor all = graph.addVariable(s.elementType(), shape, context);
  const Graph::TileToTensorMapping mapping = graph.getTileMapping(s);
  for (std::size_t i = 0; i < slices; ++i)
    graph.setTileMapping(all[i], mapping);
  // One dimension for the numbers of each dimension's slices, moved before that dimension and joined with it.
  shape.erase(shape.begin());
  shape.insert(shape.begin(), numSlices.begin(), numSlices.end());
  Tensor ordered = all.reshape(shape);
  const unsigned n = unsigned(dims.size());
  std::vector<unsigned> order;
  Sizes joined = s.shape();
  for (unsigned d = 0; d < s.rank(); ++d) {
    for (unsigned i = 0; i < n; ++i)
      if (dims[i] == d) {
        order.push_back(i);
        joined[d] *= numSlices[i];
      }
    order.push_back(n + d);
  }
  return ordered.dimShuffle(order).reshape(joined);
}

std::vector<SlicePlan> embedding::planMultiple(const std::vector<SlicePlanningParameters> &parameters) {
  return std::vector<SlicePlan>(parameters.size());
}

} // namespace popops
