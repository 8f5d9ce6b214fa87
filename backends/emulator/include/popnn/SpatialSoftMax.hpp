// Expected places of the largest elements of two-dimensional fields.
#ifndef SNNC_POPNN_SPATIAL_SOFT_MAX_HPP
#define SNNC_POPNN_SPATIAL_SOFT_MAX_HPP
#include <utility>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <popnn/NonLinearity.hpp>
namespace popnn {
/// [fields, 2]: row and column, both from -1 to 1, expected under the softmax of each of `fields` ([fields, rows, columns]) divided by
/// the temperature; and the variable that contains the temperature. `disableSoftmax`: the fields are probabilities already.
std::pair<poplar::Tensor, poplar::Tensor> spatialSoftMax2D(poplar::Graph &graph, poplar::program::Sequence &prog,
                                                           const poplar::Tensor &fields, float temperature, bool disableSoftmax = false,
                                                           const poplar::DebugContext &context = {});
} // namespace popnn
#endif
