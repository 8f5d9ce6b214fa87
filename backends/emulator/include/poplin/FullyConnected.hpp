// The products of a fully connected layer.
#ifndef SNNC_POPLIN_FULLY_CONNECTED_HPP
#define SNNC_POPLIN_FULLY_CONNECTED_HPP
#include <utility>
#include <vector>
#include <poplin/MatMul.hpp>
namespace poplin {
namespace fc {
struct FullyConnectedParams {
  std::size_t numGroups, batchSize, inputSize, outputSize;
};
/// Of the forward pass and, unless `inferenceOnly`, of both gradients.
std::vector<std::pair<MatMulParams, poplar::OptionFlags>> getMatMulPrePlanParameters(FullyConnectedParams parameters,
                                                                                     poplar::OptionFlags matmulOptions, poplar::Type type,
                                                                                     bool inferenceOnly);
} // namespace fc
} // namespace poplin
#endif
