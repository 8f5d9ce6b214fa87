// Collectives between replicas.
#ifndef SNNC_GCL_COLLECTIVES_HPP
#define SNNC_GCL_COLLECTIVES_HPP
#include <ostream>
#include <vector>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/Operation.hpp>
namespace gcl {
enum class CollectiveOperator { ADD, MEAN, MUL, MIN, MAX, LOGICAL_AND, LOGICAL_OR, SQUARE_ADD, LOCAL };
inline std::ostream &operator<<(std::ostream &os, CollectiveOperator op) {
  constexpr const char *names[] = {"ADD", "MEAN", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOCAL"};
  return os << names[int(op)];
}
enum class CommGroupType { ALL, CONSECUTIVE, ORTHOGONAL };
/// The replicas that take part.
struct CommGroup {
  CommGroup() = default;
  CommGroup(CommGroupType groupType, unsigned groupSize) : type(groupType), size(groupSize) {}
  CommGroupType type = CommGroupType::ALL;
  unsigned size = 0;
};

/// The combined value of the same tensor of all replicas, on every replica.
poplar::Tensor allReduceCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, CollectiveOperator op,
                                     poplar::program::Sequence &prog, const CommGroup &group, const poplar::DebugContext &context = {},
                                     const poplar::OptionFlags &options = {});
inline poplar::Tensor allReduceCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, CollectiveOperator op,
                                            poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                            const poplar::OptionFlags &options = {}) {
  return allReduceCrossReplica(graph, data, op, prog, CommGroup(), context, options);
}
std::vector<poplar::Tensor> allReduceCrossReplica(poplar::Graph &graph, const std::vector<poplar::Tensor> &datas, CollectiveOperator op,
                                                  poplar::program::Sequence &prog, const CommGroup &group,
                                                  const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void allReduceInPlaceCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, CollectiveOperator op, poplar::program::Sequence &prog,
                                  const CommGroup &group, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
inline void allReduceInPlaceCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, CollectiveOperator op,
                                         poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                         const poplar::OptionFlags &options = {}) {
  allReduceInPlaceCrossReplica(graph, data, op, prog, CommGroup(), context, options);
}
void allReduceToDestinationCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, const poplar::Tensor &destination,
                                        CollectiveOperator op, poplar::program::Sequence &prog, const CommGroup &group,
                                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// [replicas, …]: the tensor of every replica.
poplar::Tensor allGatherCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, poplar::program::Sequence &prog, const CommGroup &group,
                                     const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
inline poplar::Tensor allGatherCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, poplar::program::Sequence &prog,
                                            const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {
  return allGatherCrossReplica(graph, data, prog, CommGroup(), context, options);
}
/// Replica r keeps part r of the flat reduced tensor; the last part is padded with zeros.
poplar::Tensor reduceScatterCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, CollectiveOperator op,
                                         poplar::program::Sequence &prog, const CommGroup &group, const poplar::DebugContext &context = {},
                                         const poplar::OptionFlags &options = {});
inline poplar::Tensor reduceScatterCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, CollectiveOperator op,
                                                poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                                                const poplar::OptionFlags &options = {}) {
  return reduceScatterCrossReplica(graph, data, op, prog, CommGroup(), context, options);
}
/// Row r of the result is the row with this replica's number on replica r: [replicas, …].
poplar::Tensor allToAllCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, poplar::program::Sequence &prog, const CommGroup &group,
                                    const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
inline poplar::Tensor allToAllCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, poplar::program::Sequence &prog,
                                           const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {}) {
  return allToAllCrossReplica(graph, data, prog, CommGroup(), context, options);
}
/// The tensor of replica `root`, on every replica.
poplar::Tensor broadcastCrossReplica(poplar::Graph &graph, const poplar::Tensor &data, poplar::program::Sequence &prog, const CommGroup &group,
                                     unsigned root = 0, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
} // namespace gcl
#endif
