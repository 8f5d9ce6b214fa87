// Tensors of type QUARTER_METADATA, which specify how the bits of quarters are interpreted. Linked with popops.
#ifndef SNNC_POPLAR_METADATA_CREATION_HPP
#define SNNC_POPLAR_METADATA_CREATION_HPP

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Quarter.hpp>

namespace poplar {

/// A scalar on tile 0; `fp8Scale` must be in [-31, 31].
Tensor createConstantMetadataTensor(Graph &graph, QuarterMetadata::Format fp8Format, int fp8Scale, const DebugContext &context = {});
Tensor createVariableMetadataTensor(Graph &graph, QuarterMetadata::Format fp8Format, int fp8Scale, const DebugContext &context = {});
/// As above, with the scale that `fp8Scale` (INT {}) has when `prog` runs.
Tensor createVariableMetadataTensor(Graph &graph, QuarterMetadata::Format fp8Format, const Tensor &fp8Scale, program::Sequence &prog,
                                    const DebugContext &context = {});
void setMetadataTensor(Graph &graph, QuarterMetadata::Format fp8Format, const Tensor &fp8Scale, const Tensor &metadataOut,
                       program::Sequence &prog, const DebugContext &context = {});

} // namespace poplar

#endif
