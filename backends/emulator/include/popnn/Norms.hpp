// Parameters and costs of normalisations.
#ifndef SNNC_POPNN_NORMS_HPP
#define SNNC_POPNN_NORMS_HPP

#include <cstdint>
#include <utility>

#include <poplin/Norms.hpp>

namespace popnn {
std::uint64_t getNormFwdFlops(std::size_t statisticsSize, std::size_t numActsElements, bool computeStats = true);
std::uint64_t getNormBwdFlops(std::size_t statisticsSize, std::size_t numActsElements);
std::uint64_t getNormWuFlops(std::size_t paramsSize, std::size_t numActsElements);
inline poplar::Tensor createNormGamma(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::DebugContext &context = {}) {
  return poplin::createNormGamma(graph, acts, context);
}
inline poplar::Tensor createNormBeta(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::DebugContext &context = {}) {
  return poplin::createNormBeta(graph, acts, context);
}
inline std::pair<poplar::Tensor, poplar::Tensor> createNormParams(poplar::Graph &graph, const poplar::Tensor acts,
                                                                  const poplar::DebugContext &context = {}) {
  return poplin::createNormParams(graph, acts, context);
}
} // namespace popnn

#endif
