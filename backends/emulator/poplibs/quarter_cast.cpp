// Metadata of quarters, and quarters from and to half and float.
#include <poplar/MetadataCreation.hpp>
#include <popops/Cast.hpp>
#include <poputil/exceptions.hpp>

#include <cstring>

#include "elementwise.hpp"

namespace poplar {

Tensor createConstantMetadataTensor(Graph &graph, QuarterMetadata::Format fp8Format, int fp8Scale, const DebugContext &context) {
  const Tensor metadata = graph.addConstant<unsigned>(QUARTER_METADATA, {}, QuarterMetadata(fp8Format, fp8Scale).getBinary(), context);
  graph.setTileMapping(metadata, 0);
  return metadata;
}

Tensor createVariableMetadataTensor(Graph &graph, QuarterMetadata::Format fp8Format, int fp8Scale, const DebugContext &context) {
  const Tensor metadata = graph.addVariable(QUARTER_METADATA, {}, context);
  graph.setTileMapping(metadata, 0);
  graph.setInitialValue(metadata, QuarterMetadata(fp8Format, fp8Scale).getBinary());
  return metadata;
}

void setMetadataTensor(Graph &graph, QuarterMetadata::Format fp8Format, const Tensor &fp8Scale, const Tensor &metadataOut, program::Sequence &prog,
                       const DebugContext &context) {
  using namespace popops::expr;
  poplibs::requireLibrary(graph, "popops");
  const int format = QuarterMetadata(fp8Format, 0).getBinary();
  const auto scale = BitwiseAnd(Cast(_1, INT), Const(0x3f));
  poplibs::mapTo(graph, Cast(BitwiseOr(scale, Const(format)), UNSIGNED_CHAR), {fp8Scale}, metadataOut.reinterpret(UNSIGNED_CHAR), prog,
                 poplibs::contextName(context, "setMetadata"));
}

Tensor createVariableMetadataTensor(Graph &graph, QuarterMetadata::Format fp8Format, const Tensor &fp8Scale, program::Sequence &prog,
                                    const DebugContext &context) {
  const Tensor metadata = createVariableMetadataTensor(graph, fp8Format, 0, context);
  setMetadataTensor(graph, fp8Format, fp8Scale, metadata, prog, context);
  return metadata;
}

} // namespace poplar

namespace popops {

using namespace poplibs;

/// Types of a cast in which one or both are QUARTER.
struct QuarterCast {
  Type from, to;
};
template <class Archive> void describe(Archive &archive, QuarterCast &cast) { archive(cast.from)(cast.to); }

namespace {

double load(Type type, const poplar::QuarterMetadata &metadata, const char *at) {
  if (type == poplar::QUARTER)
    return poplar::fromQuarter(std::uint8_t(*at), metadata);
  if (type == poplar::HALF) {
    half value;
    std::memcpy(&value, at, sizeof value);
    return double(value);
  }
  float value;
  std::memcpy(&value, at, sizeof value);
  return double(value);
}

void store(Type type, const poplar::QuarterMetadata &metadata, double value, char *at) {
  const auto put = [&](auto converted) { std::memcpy(at, &converted, sizeof converted); };
  if (type == poplar::QUARTER)
    put(poplar::toQuarter(value, metadata));
  else if (type == poplar::HALF)
    put(half(value));
  else
    put(float(value));
}

/// Slots: the output, the input, the output's metadata, the input's.
void runCast(const State &state) {
  const auto &cast = *static_cast<const QuarterCast *>(state.shared);
  const poplar::QuarterMetadata out = poplar::QuarterMetadata::fromBinary(std::uint8_t(*state.slots[2].data));
  const poplar::QuarterMetadata in = poplar::QuarterMetadata::fromBinary(std::uint8_t(*state.slots[3].data));
  for (std::size_t i = 0; i < state.slots[0].count; ++i)
    store(cast.to, out, load(cast.from, in, state.slots[1].data + i * cast.from.size()), state.slots[0].data + i * cast.to.size());
}

Tensor metadataOf(const Tensor &tensor, const Tensor &other) { return tensor.elementType() == poplar::QUARTER ? tensor.getMetadata() : other.getMetadata(); }

} // namespace

bool detail::castsQuarters(const Tensor &src, const Tensor &dst) {
  return src.elementType() == poplar::QUARTER || dst.elementType() == poplar::QUARTER;
}

void detail::castQuarters(Graph &graph, const Tensor &src, const Tensor &dst, poplar::ComputeSet computeSet) {
  requireLibrary(graph, "popops");
  for (const Tensor &tensor : {src, dst})
    if (!tensor.elementType().isFloatingPoint())
      throw poputil::poplibs_error("cast of " + src.elementType().toString() + " to " + dst.elementType().toString() +
                                   ": a quarter is cast from and to half, float and quarter");
  const QuarterCast types{src.elementType(), dst.elementType()};
  const std::string name = "popops::CastQuarter<" + types.from.toString() + "," + types.to.toString() + ">";
  builtinType(graph, name,
              {{"out", poplar::core::Direction::Output, types.to}, {"in", poplar::core::Direction::Input, types.from},
               {"outMetadata", poplar::core::Direction::Input, poplar::QUARTER_METADATA},
               {"inMetadata", poplar::core::Direction::Input, poplar::QUARTER_METADATA}},
              quarterCastKind, types, 300);
  const Tensor flatIn = src.flatten(), flatOut = dst.flatten();
  for (const TileWork &work : workOf(graph, flatOut, "cast")) {
    const poplar::VertexRef v = graph.addVertex(computeSet, name);
    graph.connect(v["out"], pick(flatOut, work.intervals));
    graph.connect(v["in"], pick(flatIn, work.intervals));
    graph.connect(v["outMetadata"], metadataOf(dst, src).flatten());
    graph.connect(v["inMetadata"], metadataOf(src, dst).flatten());
    graph.setTileMapping(v, work.tile);
    graph.setPerfEstimate(v, sharedCycles(graph, 30 + workerShare(graph, work.elements, 4)));
  }
}

Tensor cast(Graph &graph, const Tensor &src, const poplar::Type &dstType, const Tensor &metadata, poplar::program::Sequence &prog,
            const poplar::DebugContext &context) {
  const Tensor dst = graph.clone(dstType, metadata, src, contextName(context, "cast"));
  prog.add(cast(graph, src, dst, context));
  return dst;
}

Tensor cast(Graph &graph, Tensor src, const poplar::Type &dstType, const Tensor &metadata, poplar::ComputeSet computeSet,
            const poplar::DebugContext &context) {
  const Tensor dst = graph.clone(dstType, metadata, src, contextName(context, "cast"));
  detail::castQuarters(graph, src, dst, computeSet);
  return dst;
}

} // namespace popops

namespace poplibs {
const BuiltinKind quarterCastKind{"popops.quarterCast", &popops::runCast, &readShared<popops::QuarterCast>};
}
