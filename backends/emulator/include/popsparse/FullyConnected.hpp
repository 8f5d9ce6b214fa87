// A fully connected layer whose weights ([outputs, inputs]) are sparse, with positions given as data.
#ifndef SNNC_POPSPARSE_FULLY_CONNECTED_HPP
#define SNNC_POPSPARSE_FULLY_CONNECTED_HPP
#include <tuple>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popsparse/FullyConnectedParams.hpp>
#include <popsparse/PlanningCache.hpp>
#include <popsparse/SparseTensor.hpp>
namespace popsparse {
namespace dynamic {
SparseTensor createFullyConnectedWeights(poplar::Graph &graph, const poplar::Type &inputType, const FullyConnectedParams &params,
                                         const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                         PlanningCache *cache = nullptr);
/// [batch, inputs]
poplar::Tensor createFullyConnectedInput(poplar::Graph &graph, const poplar::Type &inputType, const FullyConnectedParams &params,
                                         const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                         PlanningCache *cache = nullptr);
/// [batch, outputs]
poplar::Tensor fullyConnectedFwd(poplar::Graph &graph, const SparseTensor &weights, const poplar::Tensor &activations,
                                 const FullyConnectedParams &params, poplar::program::Sequence &prog,
                                 const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                 PlanningCache *cache = nullptr);
/// The gradient of the activations.
poplar::Tensor fullyConnectedGradA(poplar::Graph &graph, const SparseTensor &weights, const poplar::Tensor &gradients,
                                   const FullyConnectedParams &params, poplar::program::Sequence &prog,
                                   const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {},
                                   PlanningCache *cache = nullptr);
/// The gradient of the nonzero weights, in the order of their values.
poplar::Tensor fullyConnectedSparseGradW(poplar::Graph &graph, const poplar::Tensor sparsityMetaInfo, const poplar::Tensor &gradA,
                                         const poplar::Tensor &activations, const FullyConnectedParams &params,
                                         poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                         const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
/// The parts into which a dense gradient of the weights is divided: groups, inputs, outputs. The emulator divides nothing.
std::tuple<unsigned, unsigned, unsigned> fullyConnectedDenseGradWSerialSplits(const poplar::Graph &graph, const poplar::Type &inputType,
                                                                              const FullyConnectedParams &params,
                                                                              const poplar::OptionFlags &options = {},
                                                                              PlanningCache *cache = nullptr);
} // namespace dynamic
} // namespace popsparse
#endif
