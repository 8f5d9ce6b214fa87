// popops/DynamicSlice.hpp and Gather.hpp: each tile processes its columns of every slice.
#include <popops/DynamicSlice.hpp>
#include <popops/Gather.hpp>

#include <algorithm>
#include <cstring>

#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "../src/halves.hpp"
#include "elementwise.hpp"
#include "evaluate.hpp"

namespace poplibs {

using poplar::core::Direction;

namespace {

enum class SliceKind { Read, Write, Add, Max, Mul };

/// For a table of `rows` rows: `size` rows at each of `count` offsets; `width` columns.
struct Slicing {
  SliceKind kind;
  Type type;
  std::uint32_t rows, size, count, width;
  bool scaled;
};
template <class Archive> void describe(Archive &a, Slicing &s) { a(s.kind)(s.type)(s.rows)(s.size)(s.count)(s.width)(s.scaled); }

template <class T> T combined(SliceKind kind, T to, T from) {
  return kind == SliceKind::Add ? T(to + from) : kind == SliceKind::Mul ? T(to * from) : std::max(to, from);
}

void combineRow(SliceKind kind, float *to, const float *from, std::size_t n, float scale) {
  for (std::size_t i = 0; i < n; ++i)
    to[i] = combined(kind, to[i], kind == SliceKind::Add ? scale * from[i] : from[i]);
}

/// Every step is rounded to half, as in single operations.
void combineHalves(SliceKind kind, char *to, const char *from, std::size_t n, float scale) {
  constexpr std::size_t block = 128;
  float sum[block], term[block];
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t size = std::min(block, n - begin);
    poplar::core::widen(to + 2 * begin, sum, size);
    poplar::core::widen(from + 2 * begin, term, size);
    for (std::size_t i = 0; i < size && kind == SliceKind::Add; ++i)
      term[i] *= scale;
    poplar::core::roundToHalf(term, size);
    for (std::size_t i = 0; i < size; ++i)
      sum[i] = combined(kind, sum[i], term[i]);
    poplar::core::narrow(sum, to + 2 * begin, size);
  }
}

/// Sums and products of signed and unsigned numbers have the same bits; the largest is that of signed ones.
void combineIntegers(SliceKind kind, std::uint32_t *to, const std::uint32_t *from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    to[i] = kind == SliceKind::Max ? std::uint32_t(std::max(std::int32_t(to[i]), std::int32_t(from[i]))) : combined(kind, to[i], from[i]);
}

void updateRow(const Slicing &s, char *to, const char *from, float scale) {
  if (s.kind == SliceKind::Write)
    std::memcpy(to, from, s.width * s.type.size());
  else if (s.type == poplar::FLOAT)
    combineRow(s.kind, reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), s.width, scale);
  else if (s.type == poplar::HALF)
    combineHalves(s.kind, to, from, s.width, scale);
  else
    combineIntegers(s.kind, reinterpret_cast<std::uint32_t *>(to), reinterpret_cast<const std::uint32_t *>(from), s.width);
}

void runSlice(const State &state) {
  const Slicing &s = *static_cast<const Slicing *>(state.shared);
  const Slot &table = state.slots[0], &slices = state.slots[1], &offsets = state.slots[2];
  const std::size_t rowBytes = s.width * s.type.size();
  const float scale = s.scaled ? *state.slots[3].as<float>() : 1;
  for (std::uint32_t i = 0; i < s.count; ++i) {
    const std::uint32_t offset = offsets.as<std::uint32_t>()[i];
    // A single slice wraps around at the end. Several slices ignore offsets outside the table.
    if (offset >= s.rows && s.count > 1) {
      if (s.kind == SliceKind::Read)
        std::memset(slices.data + std::size_t(i) * s.size * rowBytes, 0, s.size * rowBytes);
      continue;
    }
    for (std::uint32_t r = 0; r < s.size; ++r) {
      char *const row = table.data + std::size_t((offset % s.rows + r) % s.rows) * rowBytes;
      char *const slice = slices.data + (std::size_t(i) * s.size + r) * rowBytes;
      if (s.kind == SliceKind::Read)
        std::memcpy(slice, row, rowBytes);
      else
        updateRow(s, row, slice, scale);
    }
  }
}

std::string vertexType(Graph &graph, const Slicing &s) {
  constexpr const char *names[] = {"Slice", "Update", "UpdateAdd", "UpdateMax", "UpdateMul"};
  static_assert(sizeof names / sizeof names[0] == std::size_t(SliceKind::Mul) + 1, "a name for each kind");
  const std::string name = std::string("popops::Dynamic") + names[int(s.kind)] + "<" + s.type.toString() + ">[" + std::to_string(s.rows) + "," +
                           std::to_string(s.size) + "," + std::to_string(s.count) + "," + std::to_string(s.width) + (s.scaled ? ",scaled]" : "]");
  if (hasType(graph, name))
    return name;
  const bool reads = s.kind == SliceKind::Read;
  std::vector<FieldSpec> fields{{"table", reads ? Direction::Input : Direction::InOut, s.type},
                                {"slices", reads ? Direction::Output : Direction::Input, s.type},
                                {"offsets", Direction::Input, poplar::UNSIGNED_INT}};
  if (s.scaled)
    fields.push_back({"scale", Direction::Input, poplar::FLOAT});
  builtinType(graph, name, fields, sliceKind, s, 300);
  return name;
}

/// Tile cycles. One slice: a copy that six workers share. Several: rows by their indices.
std::uint64_t sliceCycles(const Graph &graph, const Slicing &s) {
  const std::uint64_t workers = graph.getTarget().getNumWorkerContexts();
  const std::uint64_t vectors = (s.width * s.type.size() + 7) / 8;
  if (s.count == 1) {
    const std::uint64_t perWorker = (s.width + workers - 1) / workers * s.type.size() / 8;
    return std::max<std::uint64_t>(403, 25 + workers * (39 + (24 + 2 * perWorker) * s.size));
  }
  const std::uint64_t share = (std::uint64_t(s.count) * s.size + workers - 1) / workers;
  return sharedCycles(graph, 30 + share * (19 + vectors * (s.kind == SliceKind::Read || s.kind == SliceKind::Write ? 2 : 3)));
}

/// Tensors as [rows, columns] and [offsets, size, columns].
void addSlices(Graph &graph, const Tensor &table, const Tensor &slices, const Tensor &offsets, const Tensor &scale, SliceKind kind,
               const Tensor &where, poplar::program::Sequence &prog, const std::string &name) {
  const poplar::ComputeSet computeSet = graph.addComputeSet(name);
  for (const TileWork &work : workOf(graph, where, name)) {
    const auto columns = [&](const Tensor &t, unsigned dimension) {
      return poplar::concat(t.slices(poplar::ArrayRef<poplar::Interval>(work.intervals), dimension), dimension).flatten();
    };
    const Slicing s{kind, table.elementType(), std::uint32_t(table.dim(0)), std::uint32_t(slices.dim(1)), std::uint32_t(slices.dim(0)),
                    std::uint32_t(work.elements), kind == SliceKind::Add && isReal(table.elementType())};
    const poplar::VertexRef v = graph.addVertex(computeSet, vertexType(graph, s));
    graph.connect(v["table"], columns(table, 1));
    graph.connect(v["slices"], columns(slices, 2));
    graph.connect(v["offsets"], offsets);
    if (s.scaled)
      graph.connect(v["scale"], scale.reshape({1}));
    graph.setTileMapping(v, work.tile);
    graph.setPerfEstimate(v, sliceCycles(graph, s));
  }
  prog.add(poplar::program::Execute(computeSet));
}

/// One offset per row, for the one dimension that is sliced.
void checkOffsets(const Tensor &offsets, const std::string &name) {
  if (offsets.rank() == 0 || offsets.numElements() != offsets.dim(0))
    throw poputil::poplibs_error(name + ": offsets of shape " + offsets.shapeToString() + ", not {n,1}");
}

/// Offsets as UNSIGNED_INT.
Tensor asOffsets(const Tensor &offsets, const std::string &name) {
  const Type type = offsets.elementType();
  if (type != poplar::UNSIGNED_INT && type != poplar::INT)
    throw poputil::poplibs_error(name + ": offsets of type " + type.toString() + "; they must be unsigned int");
  return (type == poplar::INT ? offsets.reinterpret(poplar::UNSIGNED_INT) : offsets).flatten();
}

void check(const Tensor &t, const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, const std::string &name) {
  if (dims.size() != sizes.size() || dims.empty())
    throw poputil::poplibs_error(name + ": " + std::to_string(dims.size()) + " dimensions with " + std::to_string(sizes.size()) + " sizes");
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] >= t.rank() || sizes[i] > t.dim(unsigned(dims[i])))
      throw poputil::poplibs_error(name + ": a slice of " + std::to_string(sizes[i]) + " in dimension " + std::to_string(dims[i]) +
                                   " of a tensor of shape " + t.shapeToString());
}

void checkOffset(const Tensor &offset, const std::vector<std::size_t> &dims, const std::string &name) {
  if (offset.numElements() != dims.size())
    throw poputil::poplibs_error(name + ": " + std::to_string(offset.numElements()) + " offsets for " + std::to_string(dims.size()) + " dimensions");
}

/// A table [rows, columns] of `t` along one dimension.
Tensor asTable(const Tensor &t, std::size_t dimension) {
  const Tensor rolled = t.dimRoll(unsigned(dimension), 0);
  return rolled.reshape({rolled.dim(0), rolled.numElements() / std::max<std::size_t>(1, rolled.dim(0))});
}

/// The inverse for a slice: [size, columns] as a tensor of `shape`.
Tensor fromTable(const Tensor &table, std::vector<std::size_t> shape, std::size_t dimension) {
  const std::size_t n = shape[dimension];
  shape.erase(shape.begin() + std::ptrdiff_t(dimension));
  shape.insert(shape.begin(), n);
  return table.reshape(shape).dimRoll(0, unsigned(dimension));
}

/// Columns are on the tiles of the table's first row if these are several; otherwise they are distributed.
Tensor makeSlices(Graph &graph, const Tensor &table, std::size_t count, std::size_t size, const std::string &name) {
  const std::size_t width = table.dim(1);
  const Tensor slices = graph.addVariable(table.elementType(), {count, size, width}, name + "/Slice");
  bool complete = true;
  const Tensor first = table.dim(0) ? table[0] : table.flatten();
  const Graph::TileToTensorMapping mapping = graph.getTileMapping(first, &complete);
  const auto used = std::count_if(mapping.begin(), mapping.end(), [](const auto &m) { return !m.empty(); });
  const Tensor columns = slices.dimShuffle({2, 0, 1}).reshape({width, count * size});
  if (complete && used > 1) {
    for (std::size_t tile = 0; tile < mapping.size(); ++tile)
      for (const poplar::Interval &i : mapping[tile])
        graph.setTileMapping(columns.slice(i), unsigned(tile));
    return slices;
  }
  const Graph::TileToTensorMapping spread = poputil::calcLinearTileMapping(graph, {width}, 1, 1);
  for (std::size_t tile = 0; tile < spread.size(); ++tile)
    for (const poplar::Interval &i : spread[tile])
      graph.setTileMapping(columns.slice(i), unsigned(tile));
  return slices;
}

std::vector<std::size_t> slicedShape(const Tensor &t, std::size_t dimension, std::size_t size) {
  std::vector<std::size_t> shape = t.shape();
  shape[dimension] = size;
  return shape;
}

/// A slice along one dimension.
Tensor sliceOnce(Graph &graph, const Tensor &t, const Tensor &offset, std::size_t dimension, std::size_t size, poplar::program::Sequence &prog,
                 const std::string &name) {
  const Tensor table = asTable(t, dimension);
  const Tensor slices = makeSlices(graph, table, 1, size, name);
  addSlices(graph, table, slices, offset, {}, SliceKind::Read, slices[0][0], prog, name);
  return fromTable(slices[0], slicedShape(t, dimension, size), dimension);
}

void updateOnce(Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offset, std::size_t dimension, poplar::program::Sequence &prog,
                const std::string &name) {
  const Tensor table = asTable(t, dimension), slices = asTable(s, dimension).expand({0});
  addSlices(graph, table, slices, offset, {}, SliceKind::Write, table[0], prog, name);
}

/// Elements selected individually from several dimensions, as rows of one dimension that comes first.
struct Joined {
  Tensor rows, offsets;
};

Joined join(Graph &graph, const Tensor &t, const Tensor &offsets, const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
            poplar::program::Sequence &prog, const std::string &name) {
  check(t, dims, sizes, name);
  if (std::any_of(sizes.begin(), sizes.end(), [](std::size_t size) { return size != 1; }))
    throw poputil::poplibs_error(name + ": several slices along " + std::to_string(dims.size()) + " dimensions at once take one element of each");
  if (offsets.rank() != 2 || offsets.dim(1) != dims.size())
    throw poputil::poplibs_error(name + ": offsets of shape " + offsets.shapeToString() + ", not {n," + std::to_string(dims.size()) + "}");
  std::vector<unsigned> order(dims.begin(), dims.end());
  for (unsigned d = 0; d < t.rank(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end())
      order.push_back(d);
  Tensor rows = t.dimShuffle(order);
  const Tensor each = asOffsets(offsets, name).reshape(offsets.shape());
  popops::expr::Any index = popops::expr::_1;
  std::vector<Tensor> columns{each.transpose()[0]};
  for (std::size_t i = 1; i < dims.size(); ++i) {
    index = popops::expr::Add(popops::expr::Mul(index, popops::expr::Const(unsigned(rows.dim(1)))), popops::expr::PlaceHolder(unsigned(i + 1)));
    columns.push_back(each.transpose()[i]);
    rows = rows.flatten(0, 2);
  }
  const Tensor joined = outputLike(graph, poplar::UNSIGNED_INT, {offsets.dim(0)}, {columns[0]}, name + "/rows");
  mapTo(graph, index, columns, joined, prog, name + "/rows");
  return {rows, joined.expand({1})};
}

/// sIn ([n, sizes...]) as [n, size, columns].
Tensor asSlices(const Tensor &sIn, std::size_t dimension) {
  const Tensor rolled = sIn.dimRoll(unsigned(dimension + 1), 1);
  const std::size_t perRow = rolled.numElements() / std::max<std::size_t>(1, rolled.dim(0) * rolled.dim(1));
  return rolled.reshape({rolled.dim(0), rolled.dim(1), perRow});
}

void requireSlices(const Tensor &t, const Tensor &sIn, const Tensor &offsets, const std::vector<std::size_t> &shape, const std::string &name) {
  if (sIn.shape() != shape || sIn.elementType() != t.elementType())
    throw poputil::poplibs_error(name + ": slices of shape " + sIn.shapeToString() + " for " + std::to_string(offsets.dim(0)) +
                                 " offsets into a tensor of shape " + t.shapeToString());
}

void updateMany(Graph &graph, const Tensor &t, const Tensor &sIn, const Tensor &offsets, const Tensor &scale,
                const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes, SliceKind kind, poplar::program::Sequence &prog,
                const std::string &name) {
  requireLibrary(graph, "popops");
  if (dims.size() > 1) {
    const Joined joined = join(graph, t, offsets, dims, sizes, prog, name);
    std::vector<std::size_t> shape = slicedShape(joined.rows, 0, 1), expected = t.shape();
    shape.insert(shape.begin(), offsets.dim(0));
    for (std::size_t d : dims)
      expected[d] = 1;
    expected.insert(expected.begin(), offsets.dim(0));
    requireSlices(t, sIn, offsets, expected, name);
    return updateMany(graph, joined.rows, sIn.reshape(shape), joined.offsets, scale, {0}, {1}, kind, prog, name);
  }
  check(t, dims, sizes, name);
  const std::size_t dimension = dims[0];
  checkOffsets(offsets, name);
  std::vector<std::size_t> shape = slicedShape(t, dimension, sizes[0]);
  shape.insert(shape.begin(), offsets.dim(0));
  requireSlices(t, sIn, offsets, shape, name);
  const Tensor table = asTable(t, dimension);
  addSlices(graph, table, asSlices(sIn, dimension), asOffsets(offsets, name), scale, kind, table[0], prog, name);
}

} // namespace

const BuiltinKind sliceKind{"popops.slice", &runSlice, &readShared<Slicing>};

} // namespace poplibs

namespace popops {

using namespace poplibs;
using poplar::DebugContext;
using poplar::OptionFlags;
using poplar::program::Copy;
using poplar::program::Sequence;
using Sizes = std::vector<std::size_t>;

Tensor dynamicSlice(Graph &graph, const Tensor &t, const Tensor &offset, const Sizes &dims, const Sizes &sizes, Sequence &prog,
                    const DebugContext &context, const OptionFlags &) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "dynamicSlice");
  check(t, dims, sizes, name);
  checkOffset(offset, dims, name);
  const Tensor offsets = asOffsets(offset, name);
  Tensor result = t;
  for (std::size_t i = 0; i < dims.size(); ++i)
    result = sliceOnce(graph, result, offsets.slice(i, i + 1), dims[i], sizes[i], prog, name);
  return result;
}

void dynamicSliceWithOutput(Graph &graph, const Tensor &output, const Tensor &t, const Tensor &offset, const Sizes &dims, const Sizes &sizes,
                            Sequence &prog, const DebugContext &context, const OptionFlags &options) {
  prog.add(Copy(dynamicSlice(graph, t, offset, dims, sizes, prog, context, options), output, false, context));
}

void dynamicUpdate(Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offset, const Sizes &dims, const Sizes &sizes, Sequence &prog,
                   const DebugContext &context, const OptionFlags &) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "dynamicUpdate");
  check(t, dims, sizes, name);
  checkOffset(offset, dims, name);
  const Tensor offsets = asOffsets(offset, name);
  std::vector<std::size_t> shape = t.shape();
  for (std::size_t i = 0; i < dims.size(); ++i)
    shape[dims[i]] = sizes[i];
  if (s.shape() != shape || s.elementType() != t.elementType())
    throw poputil::poplibs_error(name + ": a slice of shape " + s.shapeToString() + " and type " + s.elementType().toString() +
                                 " does not fit a tensor of shape " + t.shapeToString());
  // With several dimensions, whole rows of the first are read, changed along the others, and written back.
  std::vector<Tensor> views{t};
  for (std::size_t i = 0; i + 1 < dims.size(); ++i)
    views.push_back(sliceOnce(graph, views[i], offsets.slice(i, i + 1), dims[i], sizes[i], prog, name));
  Tensor change = s;
  for (std::size_t i = dims.size(); i-- > 0;) {
    updateOnce(graph, views[i], change, offsets.slice(i, i + 1), dims[i], prog, name);
    change = views[i];
  }
}

Tensor multiSlice(Graph &graph, const Tensor &t, const Tensor &offsets, const Sizes &dims, const Sizes &sizes, Sequence &prog, const SlicePlan &plan,
                  const OptionFlags &options, const DebugContext &context) {
  requireLibrary(graph, "popops");
  const std::string name = contextName(context, "multiSlice");
  if (dims.size() > 1) {
    const Joined joined = join(graph, t, offsets, dims, sizes, prog, name);
    std::vector<std::size_t> shape = t.shape();
    for (std::size_t d : dims)
      shape[d] = 1;
    shape.insert(shape.begin(), offsets.dim(0));
    return multiSlice(graph, joined.rows, joined.offsets, {0}, {1}, prog, plan, options, name).reshape(shape);
  }
  check(t, dims, sizes, name);
  const std::size_t dimension = dims[0];
  checkOffsets(offsets, name);
  const Tensor table = asTable(t, dimension), flatOffsets = asOffsets(offsets, name);
  const std::size_t n = flatOffsets.numElements();
  const Tensor slices = makeSlices(graph, table, n, sizes[0], name);
  if (n)
    addSlices(graph, table, slices, flatOffsets, {}, SliceKind::Read, slices[0][0], prog, name);
  std::vector<std::size_t> shape = slicedShape(t, dimension, sizes[0]);
  shape.erase(shape.begin() + std::ptrdiff_t(dimension));
  shape.insert(shape.begin(), {n, sizes[0]});
  return slices.reshape(shape).dimRoll(1, unsigned(dimension + 1));
}

void multiUpdate(Graph &graph, const Tensor &t, const Tensor &sIn, const Tensor &offsets, const Sizes &dims, const Sizes &sizes, Sequence &prog,
                 const SlicePlan &, const OptionFlags &, const DebugContext &context) {
  updateMany(graph, t, sIn, offsets, {}, dims, sizes, SliceKind::Write, prog, contextName(context, "multiUpdate"));
}

void multiUpdateMax(Graph &graph, const Tensor &t, const Tensor &sIn, const Tensor &offsets, const Sizes &dims, const Sizes &sizes,
                    Sequence &prog, const SlicePlan &, const OptionFlags &, const DebugContext &context) {
  updateMany(graph, t, sIn, offsets, {}, dims, sizes, SliceKind::Max, prog, contextName(context, "multiUpdateMax"));
}

void multiUpdateMul(Graph &graph, const Tensor &t, const Tensor &sIn, const Tensor &offsets, const Sizes &dims, const Sizes &sizes,
                    Sequence &prog, const SlicePlan &, const OptionFlags &, const DebugContext &context) {
  updateMany(graph, t, sIn, offsets, {}, dims, sizes, SliceKind::Mul, prog, contextName(context, "multiUpdateMul"));
}

void multiUpdateAdd(Graph &graph, const Tensor &t, const Tensor &sIn, const Tensor &offsets, const Tensor &scale, const Sizes &dims,
                    const Sizes &sizes, Sequence &prog, const SlicePlan &, const OptionFlags &, const DebugContext &context) {
  const std::string name = contextName(context, "multiUpdateAdd");
  Tensor factor = scale;
  if (isReal(t.elementType()) && scale.elementType() != poplar::FLOAT) {
    factor = outputLike(graph, poplar::FLOAT, scale.shape(), {scale}, name + "/scale");
    mapTo(graph, expr::Cast(expr::_1, poplar::FLOAT), {scale}, factor, prog, name + "/scale");
  }
  updateMany(graph, t, sIn, offsets, factor, dims, sizes, SliceKind::Add, prog, name);
}

Tensor createSliceableTensor(Graph &graph, const Type &type, const Sizes &shape, const Sizes &dims, const Sizes &, std::size_t minGrainSize,
                             const DebugContext &context) {
  const Tensor t = graph.addVariable(type, shape, context);
  // The unsliced part is distributed; the slices are on the same tiles.
  std::size_t columns = 1;
  std::vector<unsigned> order;
  for (unsigned d = 0; d < shape.size(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      order.push_back(d);
      columns *= shape[d];
    }
  order.insert(order.end(), dims.begin(), dims.end());
  const Tensor table = t.dimShuffle(order).reshape({columns, t.numElements() / std::max<std::size_t>(1, columns)});
  const Graph::TileToTensorMapping mapping =
      poputil::calcLinearTileMapping(graph, {columns}, 1, unsigned(std::max<std::size_t>(1, minGrainSize)));
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    for (const poplar::Interval &i : mapping[tile])
      graph.setTileMapping(table.slice(i), unsigned(tile));
  return t;
}

Tensor createSliceableTensor(Graph &graph, const Type &type, const Sizes &shape, const Sizes &dims, const Sizes &sizes, const SlicePlan &,
                             const OptionFlags &, const DebugContext &context) {
  return createSliceableTensor(graph, type, shape, dims, sizes, 0, context);
}

Tensor createSliceTensor(Graph &graph, const Tensor &t, const Sizes &dims, const Sizes &sizes, std::size_t numIndices,
                         const DebugContext &context) {
  check(t, dims, sizes, contextName(context, "createSliceTensor"));
  std::vector<std::size_t> shape = t.shape();
  for (std::size_t i = 0; i < dims.size(); ++i)
    shape[dims[i]] = sizes[i];
  shape.insert(shape.begin(), numIndices);
  Sizes shifted;
  for (std::size_t d : dims)
    shifted.push_back(d + 1);
  shifted.insert(shifted.begin(), 0);
  return createSliceableTensor(graph, t.elementType(), shape, shifted, {}, 0, context);
}

Tensor createIndicesTensor(Graph &graph, const Sizes &dims, std::size_t numIndices, const SlicePlan &, const OptionFlags &,
                           const DebugContext &context) {
  const Tensor indices = graph.addVariable(poplar::UNSIGNED_INT, {numIndices, dims.size()}, context);
  poputil::mapTensorLinearly(graph, indices);
  return indices;
}

SlicePlan embedding::plan(const Graph &, const Type &, std::size_t, std::size_t, const Sizes &, const OptionFlags &) { return {}; }

Tensor createGatherInput(Graph &graph, const Type &type, const Sizes &operandShape, unsigned axis, GatherParams, const DebugContext &context) {
  return createSliceableTensor(graph, type, operandShape, {axis}, {1}, 0, context);
}

Tensor gather(Graph &graph, const Tensor &input, const Tensor &indices, unsigned axis, Sequence &prog, GatherParams, const DebugContext &context,
              const OptionFlags &) {
  const std::string name = contextName(context, "gather");
  if (axis >= input.rank())
    throw poputil::poplibs_error(name + ": dimension " + std::to_string(axis) + " of a tensor of shape " + input.shapeToString());
  const Tensor flat = indices.flatten();
  Tensor rows = multiSlice(graph, input, flat.expand({1}), {axis}, {1}, prog, SlicePlan(), OptionFlags(), name);
  rows = rows.squeeze({axis + 1u}).dimRoll(0, axis);
  return rows.reshapePartial(axis, axis + 1, indices.shape());
}

} // namespace popops
