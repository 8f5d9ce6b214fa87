// Tables of performance estimators, by vertex type.
#ifndef SNNC_POPUTIL_CYCLES_TABLES_HPP
#define SNNC_POPUTIL_CYCLES_TABLES_HPP

#include <string>
#include <utility>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/PerfEstimateFunc.hpp>
#include <poplar/VertexIntrospector.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#define MAKE_PERF_ESTIMATOR_NAME(codelet) getPerfEstimateFor##codelet
#define CYCLE_ESTIMATOR_ENTRY_NOPARAMS(ns, codelet)                                                                              \
  poputil::internal::makePerfEstimatorEntry(#ns "::" #codelet, MAKE_PERF_ESTIMATOR_NAME(codelet))
#define CYCLE_ESTIMATOR_ENTRY(ns, codelet, ...)                                                                                  \
  poputil::internal::makePerfEstimatorEntry(#ns "::" #codelet, MAKE_PERF_ESTIMATOR_NAME(codelet), __VA_ARGS__)
#define CODELET_FIELD(field) const auto field = vertex.getFieldInfo(#field)
#define CODELET_SCALAR_VAL(field, type) const auto field = vertex.getFieldInfo(#field).getInitialValue<type>(target)
#define CODELET_VECTOR_VALS(field, type) const auto field = vertex.getFieldInfo(#field).getInitialValues<type>(target)

namespace poputil {
namespace internal {

using PerfEstimatorTable = std::vector<std::pair<std::string, poplar::PerfEstimateFunc>>;

/// The type `codelet<arguments>` and its estimator, which gets the arguments too.
template <class F, class... Arguments>
std::pair<std::string, poplar::PerfEstimateFunc> makePerfEstimatorEntry(const std::string &codelet, F estimator, const Arguments &...arguments) {
  return {templateVertex(codelet, arguments...),
          [=](const poplar::VertexIntrospector &vertex, const poplar::Target &target) { return estimator(vertex, target, arguments...); }};
}

inline void registerPerfFunctions(poplar::Graph &graph, const PerfEstimatorTable &table) {
  for (const auto &entry : table)
    graph.registerPerfEstimator(entry.first, entry.second);
}

} // namespace internal
} // namespace poputil

#endif
