// Slices at positions that are known only at run time.
#ifndef SNNC_POPOPS_DYNAMIC_SLICE_HPP
#define SNNC_POPOPS_DYNAMIC_SLICE_HPP

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/OperationDef.hpp>

namespace popops {

/// A plan of slices that several operations share; the emulator needs none.
class SlicePlan {};

/// A tensor to be sliced along `dims`: every slice of `sizes` is on the same tiles.
poplar::Tensor createSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                     const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                                     std::size_t minGrainSize = 0, const poplar::DebugContext &context = {});
poplar::Tensor createSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                     const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, const SlicePlan &plan,
                                     const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
poplar::Tensor createSliceTensor(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::size_t> &dims,
                                 const std::vector<std::size_t> &sizes, std::size_t numIndices, const poplar::DebugContext &context = {});
poplar::Tensor createSliceTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                                 const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, std::size_t numIndices,
                                 const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
poplar::Tensor createIndicesTensor(poplar::Graph &graph, const std::vector<std::size_t> &dims, std::size_t numIndices, const SlicePlan &plan,
                                   const poplar::OptionFlags &options, const poplar::DebugContext &context = {});

/// The part of `t` that starts at offset[i] in dimension dims[i] with length sizes[i]; positions past the end wrap around.
poplar::Tensor dynamicSlice(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offset, const std::vector<std::size_t> &dims,
                            const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                            const poplar::OptionFlags &options = {});
void dynamicSliceWithOutput(poplar::Graph &graph, const poplar::Tensor &output, const poplar::Tensor &t, const poplar::Tensor &offset,
                            const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                            const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// A tensor for the result of dynamicSlice.
poplar::Tensor createDynamicSliceOutput(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offset,
                                        const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// A tensor of numSlices[i] slices like `s` along dims[i], mapped like `s`.
poplar::Tensor createSliceableTensorFromSlice(poplar::Graph &graph, const poplar::Tensor &s, const std::vector<std::size_t> &dims,
                                              const std::vector<std::size_t> &numSlices, const poplar::DebugContext &context = {});
/// The tiles of the first slice of `t`.
poplar::Graph::TileToTensorMapping getSliceMapping(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::size_t> &dims,
                                                   const std::vector<std::size_t> &sizes);
/// Writes `s` into `t` at offset[i] of dimension dims[i].
void dynamicUpdate(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s, const poplar::Tensor &offset,
                   const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                   const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

/// [n, sizes...]: one slice for each row of `offsets` ([n, dims]).
poplar::Tensor multiSlice(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offsets, const std::vector<std::size_t> &dims,
                          const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog, const SlicePlan &plan,
                          const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
inline poplar::Tensor multiSlice(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offsets,
                                 const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                                 const poplar::DebugContext &context = {}) {
  return multiSlice(graph, t, offsets, dims, sizes, prog, SlicePlan(), poplar::OptionFlags(), context);
}
/// With offsets known when the graph is built, along one dimension; an offset outside it is an index_error.
poplar::Tensor multiSlice(poplar::Graph &graph, const poplar::Tensor &t, poplar::ArrayRef<unsigned> offsets, std::size_t dim,
                          poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// Writes sIn[i] into `t` at offsets[i], in order.
void multiUpdate(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &sIn, const poplar::Tensor &offsets,
                 const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                 const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
inline void multiUpdate(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &sIn, const poplar::Tensor &offsets,
                        const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                        const poplar::DebugContext &context = {}) {
  multiUpdate(graph, t, sIn, offsets, dims, sizes, prog, SlicePlan(), poplar::OptionFlags(), context);
}
/// Adds scale * sIn[i] to `t` at offsets[i].
void multiUpdateAdd(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &sIn, const poplar::Tensor &offsets,
                    const poplar::Tensor &scale, const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                    poplar::program::Sequence &prog, const SlicePlan &plan, const poplar::OptionFlags &options,
                    const poplar::DebugContext &context = {});
inline void multiUpdateAdd(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &sIn, const poplar::Tensor &offsets,
                           const poplar::Tensor &scale, const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                           poplar::program::Sequence &prog, const poplar::DebugContext &context = {}) {
  multiUpdateAdd(graph, t, sIn, offsets, scale, dims, sizes, prog, SlicePlan(), poplar::OptionFlags(), context);
}
/// With offsets known when the graph is built, along one dimension.
void multiUpdateAdd(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &sIn, poplar::ArrayRef<unsigned> offsets,
                    const poplar::Tensor &scale, std::size_t dim, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                    const poplar::OptionFlags &options = {});
/// Keeps the maximum of sIn[i] and the elements of `t` at offsets[i].
void multiUpdateMax(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &sIn, const poplar::Tensor &offsets,
                    const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                    const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
/// Multiplies the elements of `t` at offsets[i] by sIn[i].
void multiUpdateMul(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &sIn, const poplar::Tensor &offsets,
                    const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                    const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});

/// These operations for each of the slices along a first dimension of `t`, of `s` and of the offsets.
poplar::Tensor createGroupedSliceableTensor(poplar::Graph &graph, const poplar::Type &type, std::size_t groupSize,
                                            const std::vector<std::size_t> &shape, const std::vector<std::size_t> &dims,
                                            const std::vector<std::size_t> &sizes, const SlicePlan &plan, const poplar::OptionFlags &options,
                                            const poplar::DebugContext &context = {});
poplar::Tensor createGroupedSliceTensor(poplar::Graph &graph, const poplar::Type &type, std::size_t groupSize, const std::vector<std::size_t> &shape,
                                        const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, std::size_t numIndices,
                                        const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
poplar::Tensor createGroupedIndicesTensor(poplar::Graph &graph, std::size_t groupSize, const std::vector<std::size_t> &dims, std::size_t numIndices,
                                          const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
poplar::Tensor groupedMultiSlice(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offsets, const std::vector<std::size_t> &dims,
                                 const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog, const SlicePlan &plan,
                                 const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
void groupedMultiUpdate(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s, const poplar::Tensor &offsets,
                        const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                        const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
void groupedMultiUpdateAdd(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s, const poplar::Tensor &offsets,
                           const poplar::Tensor &scale, const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                           poplar::program::Sequence &prog, const SlicePlan &plan, const poplar::OptionFlags &options,
                           const poplar::DebugContext &context = {});
void groupedMultiUpdateMax(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s, const poplar::Tensor &offsets,
                           const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                           const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});
void groupedMultiUpdateMul(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s, const poplar::Tensor &offsets,
                           const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                           const SlicePlan &plan, const poplar::OptionFlags &options, const poplar::DebugContext &context = {});

namespace embedding {
SlicePlan plan(const poplar::Graph &graph, const poplar::Type &dataType, std::size_t numEntries, std::size_t outputSize,
               const std::vector<std::size_t> &numLookups, const poplar::OptionFlags &options);
inline SlicePlan plan(const poplar::Graph &graph, const poplar::Type &dataType, std::size_t, std::size_t numEntries, std::size_t outputSize,
                      const std::vector<std::size_t> &numLookups, const poplar::OptionFlags &options) {
  return plan(graph, dataType, numEntries, outputSize, numLookups, options);
}

/// The arguments of `plan`, for several plans at once.
struct SlicePlanningParameters {
  const poplar::Graph &graph;
  const poplar::Type dataType;
  const std::size_t groupSize = 1;
  const std::size_t numEntries, outputSize;
  const std::vector<std::size_t> numLookups;
  const poplar::OptionFlags optionFlags;
  SlicePlanningParameters(const poplar::Graph &g, const poplar::Type &type, std::size_t groups, std::size_t entries, std::size_t size,
                          const std::vector<std::size_t> &lookups, const poplar::OptionFlags &options)
      : graph(g), dataType(type), groupSize(groups), numEntries(entries), outputSize(size), numLookups(lookups), optionFlags(options) {}
  SlicePlanningParameters(const poplar::Graph &g, const poplar::Type &type, std::size_t entries, std::size_t size,
                          const std::vector<std::size_t> &lookups, const poplar::OptionFlags &options)
      : SlicePlanningParameters(g, type, 1, entries, size, lookups, options) {}
};
std::vector<SlicePlan> planMultiple(const std::vector<SlicePlanningParameters> &parameters);
} // namespace embedding

} // namespace popops

#endif
