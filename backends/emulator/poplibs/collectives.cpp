// gcl/Collectives.hpp: tensors are passed around the ring of replicas.
#include <gcl/Collectives.hpp>

#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "elementwise.hpp"
#include "evaluate.hpp"

namespace gcl {

using namespace poplibs;
using popops::expr::BinaryOp;
using popops::expr::BinaryOpType;
using popops::expr::Const;
using popops::expr::_1;
using popops::expr::_2;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

BinaryOpType combining(CollectiveOperator op) {
  switch (op) {
  case CollectiveOperator::MUL:
    return BinaryOpType::MULTIPLY;
  case CollectiveOperator::MIN:
    return BinaryOpType::MINIMUM;
  case CollectiveOperator::MAX:
    return BinaryOpType::MAXIMUM;
  case CollectiveOperator::LOGICAL_AND:
    return BinaryOpType::LOGICAL_AND;
  case CollectiveOperator::LOGICAL_OR:
    return BinaryOpType::LOGICAL_OR;
  default:
    return BinaryOpType::ADD;
  }
}

/// Replicas that work together: `size` of them, `stride` apart.
struct Ring {
  unsigned size, stride, replicas;

  unsigned position(unsigned replica) const { return replica / stride % size; }
  /// The receiver of each replica's data: the replica that is `by` positions further in its group.
  std::map<unsigned, unsigned> next(unsigned by) const {
    std::map<unsigned, unsigned> found;
    for (unsigned r = 0; r < replicas; ++r)
      found[r] = r - position(r) * stride + (position(r) + by) % size * stride;
    return found;
  }
};

/// The replicas of a group. CONSECUTIVE: neighbours; ORTHOGONAL: at a distance of the number of groups; size 0: all replicas.
Ring ringOf(const Graph &graph, const CommGroup &group, const std::string &name) {
  const unsigned n = graph.getReplicationFactor();
  if (group.type == CommGroupType::ALL || group.size == 0)
    return {n, 1, n};
  if (n % group.size != 0)
    throw poputil::poplibs_error(name + ": " + std::to_string(n) + " replicas cannot be shared out to groups of " + std::to_string(group.size));
  return {group.size, group.type == CommGroupType::ORTHOGONAL ? n / group.size : 1, n};
}

/// The replica's number in its group.
Tensor positionIn(Graph &graph, const Ring &ring, Sequence &prog, const std::string &name) {
  const Tensor index = graph.addReplicationIndexConstant(name + "/index");
  graph.setTileMapping(index, 0);
  if (ring.size == ring.replicas)
    return index;
  const Tensor position = outputLike(graph, index.elementType(), index.shape(), {index}, name + "/position");
  mapTo(graph, BinaryOp(BinaryOpType::REMAINDER, BinaryOp(BinaryOpType::DIVIDE, _1, Const(ring.stride)), Const(ring.size)), {index}, position, prog,
        name + "/Position");
  return position;
}

void reduceTo(Graph &graph, const Tensor &data, const Tensor &out, CollectiveOperator op, Sequence &prog, const CommGroup &group,
              const std::string &name) {
  const Ring ring = ringOf(graph, group, name);
  const unsigned n = ring.size;
  if (op == CollectiveOperator::SQUARE_ADD)
    mapTo(graph, popops::expr::Square(_1), {data}, out, prog, name + "/square");
  else if (!(data == out))
    prog.add(Copy(data, out));
  if (n == 1 || op == CollectiveOperator::LOCAL)
    return;
  const Tensor own = duplicate(graph, out, prog, name + "/own"), heard = outputLike(graph, data.elementType(), data.shape(), {out}, name + "/heard");
  for (unsigned by = 1; by < n; ++by) {
    prog.add(poplar::program::CrossReplicaCopy(own, heard, ring.next(by), name));
    mapTo(graph, BinaryOp(combining(op), _1, _2), {out, heard}, out, prog, name + "/Reduce");
  }
  if (op == CollectiveOperator::MEAN)
    mapTo(graph, BinaryOp(BinaryOpType::MULTIPLY, _1, Const(1.0f / float(n))), {out}, out, prog, name + "/Mean");
}

std::string nameOf(const DebugContext &context, const char *fallback) { return contextName(context, fallback); }

} // namespace

Tensor allReduceCrossReplica(Graph &graph, const Tensor &data, CollectiveOperator op, Sequence &prog, const CommGroup &group,
                             const DebugContext &context, const OptionFlags &) {
  const std::string name = nameOf(context, "allReduce");
  const Tensor out = outputLike(graph, data.elementType(), data.shape(), {data}, name + "/Out");
  reduceTo(graph, data, out, op, prog, group, name);
  return out;
}

std::vector<Tensor> allReduceCrossReplica(Graph &graph, const std::vector<Tensor> &datas, CollectiveOperator op, Sequence &prog,
                                          const CommGroup &group, const DebugContext &context, const OptionFlags &options) {
  std::vector<Tensor> results;
  for (const Tensor &data : datas)
    results.push_back(allReduceCrossReplica(graph, data, op, prog, group, context, options));
  return results;
}

void allReduceInPlaceCrossReplica(Graph &graph, const Tensor &data, CollectiveOperator op, Sequence &prog, const CommGroup &group,
                                  const DebugContext &context, const OptionFlags &) {
  reduceTo(graph, data, data, op, prog, group, nameOf(context, "allReduce"));
}

void allReduceToDestinationCrossReplica(Graph &graph, const Tensor &data, const Tensor &destination, CollectiveOperator op, Sequence &prog,
                                        const CommGroup &group, const DebugContext &context, const OptionFlags &) {
  reduceTo(graph, data, destination, op, prog, group, nameOf(context, "allReduce"));
}

Tensor allGatherCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const CommGroup &group, const DebugContext &context,
                             const OptionFlags &) {
  const std::string name = nameOf(context, "allGather");
  const Ring ring = ringOf(graph, group, name);
  const unsigned n = ring.size;
  std::vector<Tensor> rows;
  for (unsigned r = 0; r < n; ++r)
    rows.push_back(outputLike(graph, data.elementType(), data.shape(), {data}, name + "/Out").expand({0}));
  const Tensor heard = outputLike(graph, data.elementType(), data.shape(), {data}, name + "/heard");
  const Tensor index = positionIn(graph, ring, prog, name);
  for (unsigned by = 0; by < n; ++by) {
    if (by > 0)
      prog.add(poplar::program::CrossReplicaCopy(data, heard, ring.next(by), name));
    // Received from replica (own number in the group - by), so each replica stores it at another position.
    for (unsigned r = 0; r < n; ++r)
      mapTo(graph, popops::expr::Select(_1, _2, popops::expr::Equal(popops::expr::_3, Const((r + by) % n))),
            {by > 0 ? heard : data, by > 0 ? rows[r][0] : data, index}, rows[r][0], prog, name + "/Place");
  }
  return poplar::concat(rows);
}

Tensor reduceScatterCrossReplica(Graph &graph, const Tensor &data, CollectiveOperator op, Sequence &prog, const CommGroup &group,
                                 const DebugContext &context, const OptionFlags &options) {
  const std::string name = nameOf(context, "reduceScatter");
  const Tensor whole = allReduceCrossReplica(graph, data, op, prog, group, name, options).flatten();
  const Ring ring = ringOf(graph, group, name);
  const std::size_t n = ring.size, each = (whole.numElements() + n - 1) / n;
  const Tensor part = graph.addVariable(data.elementType(), {each}, name + "/Out");
  poputil::mapTensorLinearly(graph, part);
  const Tensor index = positionIn(graph, ring, prog, name);
  for (std::size_t r = 0; r < n; ++r) {
    const std::size_t begin = std::min(r * each, whole.numElements()), end = std::min(begin + each, whole.numElements());
    const Tensor mine = part.slice(0, end - begin), rest = part.slice(end - begin, each);
    const popops::expr::Equal here(_2, Const(unsigned(r)));
    if (end > begin)
      mapTo(graph, popops::expr::Select(_1, popops::expr::_3, here), {whole.slice(begin, end), index, mine}, mine, prog, name + "/Scatter");
    if (end - begin < each)
      mapTo(graph, popops::expr::Select(popops::expr::Cast(Const(0), data.elementType()), _1, here), {rest, index}, rest, prog, name + "/Scatter");
  }
  return part;
}

Tensor allToAllCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const CommGroup &group, const DebugContext &context,
                            const OptionFlags &options) {
  const std::string name = nameOf(context, "allToAll");
  const Ring ring = ringOf(graph, group, name);
  if (data.rank() == 0 || data.dim(0) != ring.size)
    throw poputil::poplibs_error(name + ": a tensor of shape " + data.shapeToString() + " has no row for each of " + std::to_string(ring.size) +
                                 " replicas");
  const Tensor all = allGatherCrossReplica(graph, data, prog, group, name, options);
  const Tensor out = outputLike(graph, data.elementType(), data.shape(), {data}, name + "/Out");
  const Tensor index = positionIn(graph, ring, prog, name);
  // Each replica keeps the column with its own number.
  for (unsigned r = 0; r < ring.size; ++r) {
    const Tensor column = all.slice(r, r + 1, 1).squeeze({1});
    mapTo(graph, popops::expr::Select(_1, _2, popops::expr::Equal(popops::expr::_3, Const(r))), {column, r == 0 ? column : out, index}, out, prog,
          name + "/Place");
  }
  return out;
}

Tensor broadcastCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const CommGroup &group, unsigned root, const DebugContext &context,
                             const OptionFlags &options) {
  const std::string name = nameOf(context, "broadcast");
  if (const Ring ring = ringOf(graph, group, name); root >= ring.size)
    throw poputil::poplibs_error(name + ": replica " + std::to_string(root) + " of a group of " + std::to_string(ring.size));
  const Tensor all = allGatherCrossReplica(graph, data, prog, group, name, options);
  return all[root];
}

} // namespace gcl
