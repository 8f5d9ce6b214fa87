// Variables, constants, tile mapping, host access.
#include <poplar/Graph.hpp>
#include <poplar/HalfFloat.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "graph_data.hpp"

namespace poplar {

using core::Index;

namespace core {

void writeValue(char *out, Type type, const HostValue &value) {
  const auto put = [&](auto converted) { std::memcpy(out, &converted, sizeof converted); };
  const double real = value.isFloat ? value.real : double(value.integer);
  const std::int64_t integer = value.isFloat ? std::int64_t(value.real) : value.integer;
  if (type == FLOAT)
    put(float(real));
  else if (type == HALF)
    put(half(float(real)));
  else if (type == BOOL)
    put(char(value.isFloat ? real != 0 : integer != 0));
  else
    std::memcpy(out, &integer, type.size()); // little endian
}

void requireOwn(const GraphData &graph, const Tensor &tensor, const std::string &user) {
  if (tensor.data().graph != &graph)
    throw graph_connection_error(user + ": tensor '" + tensor.getName() + "' belongs to another graph");
}

std::string GraphData::vertexName(std::uint32_t vertex) const {
  const VertexData &v = vertices[vertex];
  return "vertex " + std::to_string(vertex) + " (" + v.type->name + ")";
}

std::string GraphData::elementName(std::uint32_t variable, Index begin, Index end) const {
  return variables[variable].name + "[" + std::to_string(begin) + ":" + std::to_string(end) + "]";
}

} // namespace core

Graph::Graph(const Target &target, replication_factor factor) : data_(std::make_shared<core::GraphData>()) {
  data_->target = target;
  data_->replicas = factor;
  if (factor == 0 || target.getNumIPUs() % factor != 0)
    throw graph_replication_error(std::to_string(target.getNumIPUs()) + " IPUs cannot be shared among " + std::to_string(unsigned(factor)) +
                                  " replicas");
  if (factor > 1)
    data_->target = target.createVirtualTarget(target.getNumIPUs() / factor, target.getTilesPerIPU());
}
Graph::Graph(Graph &&) noexcept = default;
Graph &Graph::operator=(Graph &&) noexcept = default;
Graph::~Graph() = default;

const Target &Graph::getTarget() const { return selection_ ? selection_->target : data_->target; }
unsigned Graph::getReplicationFactor() const { return data_->replicas; }
std::size_t Graph::getNumVertices() const { return data_->vertices.size(); }
std::size_t Graph::getNumVars() const { return data_->variables.size(); }
std::size_t Graph::getNumComputeSets() const { return data_->computeSets.size(); }
bool Graph::hasCodelet(const std::string &name) const { return data_->codelets.contains(core::canonicalName(name)); }

Tensor Graph::addReplicationIndexConstant(const DebugContext &context) {
  const Tensor index = addConstantValues(UNSIGNED_INT, {}, {HostValue(0u)}, context);
  data_->replicaIndices.push_back(std::uint32_t(data_->variables.size() - 1));
  return index;
}

Tensor Graph::cloneN(const Tensor &tensor, std::size_t n, const DebugContext &context) {
  return cloneN(tensor.elementType(), tensor, n, context);
}

Tensor Graph::cloneN(const Type &type, const Tensor &tensor, std::size_t n, const DebugContext &context, TensorCloneMethod method,
                     TensorCloneDuplicationMethod) {
  std::vector<Tensor> copies;
  for (std::size_t i = 0; i < n; ++i)
    copies.push_back(clone(type, tensor, context, method).expand({0}));
  return concat(copies);
}

bool Graph::addCodelets(const std::string &path, CodeletFileType, const std::string &compileFlags, const std::string &) {
  data_->codelets.addFile(path, compileFlags);
  return true;
}

void Graph::addCodelets(ArrayRef<std::string> paths, const std::string &compileFlags) {
  for (const std::string &path : paths)
    addCodelets(path, CodeletFileType::Auto, compileFlags);
}

void Graph::addCodelets(std::initializer_list<const char *> paths, const std::string &compileFlags) {
  for (const char *path : paths)
    addCodelets(std::string(path), CodeletFileType::Auto, compileFlags);
}

void Graph::addCodelets(std::stringstream &stream, const std::string &compileFlags, CodeletFileType) {
  data_->codelets.addSource(stream.str(), compileFlags);
}

Tensor Graph::addVariable(const Type &type, ArrayRef<std::size_t> shape, const DebugContext &context) {
  return addVariable(type, shape, VariableMappingMethod::NONE, context);
}

Tensor Graph::addVariable(const Type &type, ArrayRef<std::size_t> shape, VariableMappingMethod method, const DebugContext &context) {
  core::Variable variable;
  const std::uint32_t id = std::uint32_t(data_->variables.size());
  variable.name = context.getPathName().empty() ? "variable" + std::to_string(id) : context.getPathName();
  variable.type = type;
  variable.shape = core::toVector(shape);
  core::View view;
  view.var = id;
  view.shape = variable.shape;
  view.strides = core::rowMajorStrides(view.shape);
  double elements = 1;
  for (std::size_t d : variable.shape)
    elements *= double(d);
  if (elements > double(core::mostElements))
    throw tensor_creation_error("'" + variable.name + "' of shape " + core::shapeText(variable.shape) + " has more than " +
                                std::to_string(core::mostElements) + " elements");
  variable.elements = view.numElements();
  const unsigned tiles = getTarget().getNumTiles();
  if (data_->target.getNumTiles() == 1 && variable.elements > 0) {
    variable.tiles.assign(0, variable.elements, 0);
  } else if (method == VariableMappingMethod::LINEAR) {
    const Index each = (variable.elements + tiles - 1) / tiles;
    for (Index begin = 0, tile = 0; begin < variable.elements; begin += each, ++tile)
      variable.tiles.assign(begin, std::min(begin + each, variable.elements), physicalTile(unsigned(tile), variable.name));
  }
  data_->variables.push_back(std::move(variable));
  return core::makeTensor(data_.get(), type, std::move(view));
}

Tensor Graph::addVariable(const Type &type, const Tensor &metadata, ArrayRef<std::size_t> shape, const DebugContext &context) {
  core::requireOwn(*data_, metadata, "addVariable");
  if (!type.requiresMetadata() || metadata.elementType() != QUARTER_METADATA || metadata.numElements() != 1)
    throw tensor_metadata_error("addVariable of type " + type.toString() + " with metadata of type " + metadata.elementType().toString() + " and shape " +
                                metadata.shapeToString() + ": a QUARTER has one element of QUARTER_METADATA");
  const Tensor tensor = addVariable(type, shape, context);
  data_->variables.back().metadata = std::make_shared<const core::TensorData>(metadata.data());
  return tensor;
}

Tensor Graph::addConstantQuarter(const Type &type, const QuarterMetadata &metadata, ArrayRef<std::size_t> shape, const std::vector<double> &values,
                                 const DebugContext &context) {
  if (type != QUARTER)
    throw type_error("addConstant with metadata of a quarter for type " + type.toString());
  std::vector<HostValue> bits;
  for (const double value : values)
    bits.emplace_back(toQuarter(value, metadata));
  const Tensor format = addConstantValues(QUARTER_METADATA, {}, {HostValue(metadata.getBinary())}, DebugContext(context, "metadata"));
  setTileMapping(format, 0);
  const Tensor tensor = addConstantValues(type, shape, bits, context);
  data_->variables.back().metadata = std::make_shared<const core::TensorData>(format.data());
  return tensor;
}

Tensor Graph::addConstantValues(const Type &type, ArrayRef<std::size_t> shape, const std::vector<HostValue> &values,
                                const DebugContext &context) {
  const DebugContext named = context.getPathName().empty() ? DebugContext("constant" + std::to_string(data_->variables.size())) : context;
  Tensor tensor = addVariable(type, shape, named);
  core::Variable &variable = data_->variables.back();
  if (values.size() != 1 && Index(values.size()) != variable.elements)
    throw tensor_creation_error("constant '" + variable.name + "' of shape " + tensor.shapeToString() + " was given " +
                                std::to_string(values.size()) + " values");
  variable.constant = true;
  variable.value.resize(std::size_t(variable.elements) * type.size());
  for (Index i = 0; i < variable.elements; ++i)
    core::writeValue(&variable.value[std::size_t(i) * type.size()], type, values[values.size() == 1 ? 0 : std::size_t(i)]);
  return tensor;
}

Tensor Graph::clone(const Type &type, const Tensor &tensor, const DebugContext &context, TensorCloneMethod) {
  core::requireOwn(*data_, tensor, "clone");
  Tensor copy = addVariable(type, tensor.shape(), context.getPathName().empty() ? DebugContext(tensor.getName() + "_clone") : context);
  setTileMapping(copy, getTileMapping(tensor, false));
  if (type.requiresMetadata() && tensor.hasMetadata())
    data_->variables.back().metadata = std::make_shared<const core::TensorData>(tensor.getMetadata().data());
  return copy;
}

Tensor Graph::clone(const Type &type, const Tensor &metadata, const Tensor &tensor, const DebugContext &context, TensorCloneMethod) {
  core::requireOwn(*data_, tensor, "clone");
  const Tensor copy = addVariable(type, metadata, tensor.shape(), context.getPathName().empty() ? DebugContext(tensor.getName() + "_clone") : context);
  setTileMapping(copy, getTileMapping(tensor, false));
  return copy;
}

void Graph::setTileMapping(const Tensor &tensor, unsigned virtualTile) {
  core::requireOwn(*data_, tensor, "setTileMapping");
  const unsigned tile = physicalTile(virtualTile, "'" + tensor.getName() + "'");
  for (const core::Block &b : core::blocksOf(tensor.data().view)) {
    core::TileMap &map = data_->variables[b.var].tiles;
    core::forEachInterval(b, [&](Index begin, Index end) { map.assign(begin, end, tile); });
  }
}

void Graph::setTileMapping(const Tensor &tensor, const TileToTensorMapping &mapping) {
  const Tensor flat = tensor.flatten();
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    for (const Interval &i : mapping[tile])
      setTileMapping(flat.slice(i), unsigned(tile));
}

namespace {

/// The mapping in terms of a virtual graph's tile numbers.
Graph::TileToTensorMapping seenBy(const core::TileSelection &selection, const Graph::TileToTensorMapping &mapping) {
  Graph::TileToTensorMapping seen;
  std::size_t inside = 0, all = 0;
  for (unsigned tile : selection.tiles) {
    seen.push_back(mapping[tile]);
    inside += mapping[tile].size();
  }
  for (const std::vector<Interval> &ranges : mapping)
    all += ranges.size();
  if (inside != all)
    throw invalid_tile_mapping("getTileMapping of a tensor that lies outside the virtual graph");
  return seen;
}

} // namespace

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor &tensor, bool *isComplete) const {
  core::requireOwn(*data_, tensor, "getTileMapping");
  TileToTensorMapping mapping(data_->target.getNumTiles());
  bool complete = true;
  std::size_t at = 0;
  const auto add = [&](std::uint32_t tile, std::size_t length) {
    std::vector<Interval> &list = mapping[tile];
    if (!list.empty() && list.back().end() == at)
      list.back() = Interval(list.back().begin(), at + length);
    else
      list.emplace_back(at, at + length);
  };
  const auto addRange = [&](const core::TileMap &map, Index begin, Index end) {
    const std::vector<core::Piece> &pieces = map.pieces();
    for (std::size_t p = map.find(begin); begin < end;) {
      const bool inside = p < pieces.size() && pieces[p].begin <= begin;
      const Index limit = inside ? pieces[p].end : p < pieces.size() ? pieces[p].begin : end;
      const Index next = std::min(end, limit);
      if (inside)
        add(pieces[p].tile, std::size_t(next - begin));
      complete = complete && inside;
      at += std::size_t(next - begin);
      begin = next;
      p += inside ? 1 : 0;
    }
  };
  for (const core::Block &b : core::blocksOf(tensor.data().view)) {
    const core::TileMap &map = data_->variables[b.var].tiles;
    for (Index i = 0; i < b.n1; ++i) {
      const Index start = b.start + i * b.s1;
      if (b.n0 == 1 || b.s0 == 1)
        addRange(map, start, start + b.n0);
      else
        for (Index j = 0; j < b.n0; ++j)
          addRange(map, start + j * b.s0, start + j * b.s0 + 1);
    }
  }
  if (isComplete)
    *isComplete = complete;
  return selection_ ? seenBy(*selection_, mapping) : mapping;
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor &tensor, bool requireComplete) const {
  bool complete = true;
  TileToTensorMapping mapping = getTileMapping(tensor, &complete);
  if (requireComplete && !complete)
    throw invalid_tile_mapping("'" + tensor.getName() + "' is not mapped completely");
  return mapping;
}

void Graph::setInitialValues(const Tensor &tensor, const std::vector<HostValue> &values) {
  core::requireOwn(*data_, tensor, "setInitialValue");
  if (values.size() != 1 && values.size() != tensor.numElements())
    throw graph_connection_error("setInitialValue: " + std::to_string(values.size()) + " values for '" + tensor.getName() + "' of shape " +
                                 tensor.shapeToString());
  data_->tensorValues.push_back({tensor.data(), values});
}

namespace {

void addHandle(core::GraphData &data, const std::string &handle, const Tensor &tensor, bool write) {
  core::requireOwn(data, tensor, "host access '" + handle + "'");
  auto found = data.handles.find(handle);
  if (found == data.handles.end())
    found = data.handles.emplace(handle, core::HostHandle{tensor.data(), false, false}).first;
  else if (!(Tensor(std::make_shared<const core::TensorData>(found->second.tensor)) == tensor) || (write ? found->second.write : found->second.read))
    throw graph_object_creation_error("host access '" + handle + "' exists already");
  (write ? found->second.write : found->second.read) = true;
}

DataStream addStream(core::GraphData &data, const std::string &handle, const Type &type, std::size_t elements, bool toDevice,
                     bool broadcast = false) {
  for (const DataStream &s : data.streams)
    if (s.name == handle)
      throw graph_object_creation_error("stream '" + handle + "' exists already");
  DataStream stream;
  stream.id = std::uint32_t(data.streams.size());
  stream.name = handle;
  stream.type = type;
  stream.elements = elements;
  stream.toDevice = toDevice;
  stream.broadcast = broadcast;
  data.streams.push_back(stream);
  return stream;
}

} // namespace

void Graph::createHostWrite(const std::string &handle, const Tensor &tensor, bool) { addHandle(*data_, handle, tensor, true); }
void Graph::createHostRead(const std::string &handle, const Tensor &tensor, bool) { addHandle(*data_, handle, tensor, false); }

DataStream Graph::addHostToDeviceFIFO(const std::string &handle, const Type &type, std::size_t numElements, ReplicatedStreamMode mode,
                                      const OptionFlags &) {
  return addStream(*data_, handle, type, numElements, true, mode == ReplicatedStreamMode::BROADCAST);
}

DataStream Graph::addDeviceToHostFIFO(const std::string &handle, const Type &type, std::size_t numElements, const OptionFlags &) {
  return addStream(*data_, handle, type, numElements, false);
}

RemoteBuffer Graph::addRemoteBuffer(const std::string &handle, const Type &elementType, std::size_t numElements, std::size_t repeats,
                                    bool rearrangeOnHost, bool optimiseMemory) {
  for (const RemoteBuffer &b : data_->remotes)
    if (b.name == handle)
      throw graph_object_creation_error("remote buffer '" + handle + "' exists already");
  if (numElements == 0 || repeats == 0)
    throw graph_object_creation_error("remote buffer '" + handle + "' of " + std::to_string(repeats) + " rows of " +
                                      std::to_string(numElements) + " elements holds nothing");
  RemoteBuffer buffer;
  buffer.id = std::uint32_t(data_->remotes.size());
  buffer.name = handle;
  buffer.type = elementType;
  buffer.elements = numElements;
  buffer.repeats = repeats;
  buffer.rearranges = rearrangeOnHost;
  buffer.small = optimiseMemory;
  data_->remotes.push_back(buffer);
  return buffer;
}

void Graph::registerCycleEstimator(const std::string &vertexTypeName, CycleEstimateFunc estimator) {
  registerPerfEstimator(vertexTypeName, [estimator](const VertexIntrospector &vertex, const Target &target) {
    return VertexPerfEstimate(estimator(vertex, target));
  });
}

void Graph::registerPerfEstimator(const std::string &vertexTypeName, PerfEstimateFunc estimator) {
  const std::string name = core::canonicalName(vertexTypeName);
  if (!data_->codelets.contains(name))
    throw unknown_vertex_type("registerPerfEstimator: there is no vertex type '" + vertexTypeName + "'");
  data_->perfEstimators[name] = std::move(estimator);
}

namespace {

std::vector<HostValue> fromHalves(ArrayRef<std::uint16_t> bits) {
  std::vector<HostValue> values;
  for (std::uint16_t b : bits) {
    half value;
    std::memcpy(&value, &b, sizeof value);
    values.emplace_back(value);
  }
  return values;
}

} // namespace

namespace {

template <class T> std::vector<HostValue> readAs(const void *values, std::size_t n) {
  const T *begin = static_cast<const T *>(values);
  return std::vector<HostValue>(begin, begin + n);
}

template <class Signed, class Unsigned> std::vector<HostValue> readIntegers(const void *values, std::size_t n, bool isSigned) {
  return isSigned ? readAs<Signed>(values, n) : readAs<Unsigned>(values, n);
}

} // namespace

Tensor Graph::addConstant(const Type &type, ArrayRef<std::size_t> shape, const void *values, const TypeTraits &traits, bool broadcast,
                          const DebugContext &context) {
  std::size_t n = 1;
  for (std::size_t d : shape)
    n *= d;
  if (broadcast)
    n = 1;
  const bool isFloat = traits.isFloat, isSigned = traits.isSigned;
  switch (traits.size) {
  case 1:
    if (!isFloat)
      return addConstantValues(type, shape, readIntegers<std::int8_t, std::uint8_t>(values, n, isSigned), context);
    break;
  case 2:
    if (isFloat)
      return addConstantValues(type, shape, fromHalves(ArrayRef<std::uint16_t>(static_cast<const std::uint16_t *>(values), n)), context);
    return addConstantValues(type, shape, readIntegers<std::int16_t, std::uint16_t>(values, n, isSigned), context);
  case 4:
    return addConstantValues(type, shape, isFloat ? readAs<float>(values, n) : readIntegers<std::int32_t, std::uint32_t>(values, n, isSigned),
                             context);
  case 8:
    return addConstantValues(type, shape, isFloat ? readAs<double>(values, n) : readIntegers<std::int64_t, std::uint64_t>(values, n, isSigned),
                             context);
  default:
    break;
  }
  throw poplar_error("addConstant: the traits describe no number: " + std::to_string(traits.size) + " bytes");
}

Tensor Graph::addConstantHalf(const Type &type, ArrayRef<std::size_t> shape, const std::uint16_t *bits, const DebugContext &context) {
  std::size_t n = 1;
  for (std::size_t d : shape)
    n *= d;
  return addConstantValues(type, shape, fromHalves(ArrayRef<std::uint16_t>(bits, n)), context);
}

Tensor Graph::addConstantHalf(const Type &type, ArrayRef<std::size_t> shape, std::uint16_t bits, const DebugContext &context) {
  return addConstantValues(type, shape, fromHalves(ArrayRef<std::uint16_t>(&bits, 1)), context);
}

void Graph::setInitialValueHalf(const Tensor &tensor, ArrayRef<std::uint16_t> bits) { setInitialValues(tensor, fromHalves(bits)); }
void Graph::setInitialValueHalf(const FieldRef &field, ArrayRef<std::uint16_t> bits) { setInitialValues(field, fromHalves(bits)); }

Function Graph::addFunction(const program::Program &program) {
  data_->functions.push_back(program);
  return Function(data_->functions.size() - 1);
}

FunctionBuffer Graph::addFunctionBuffer(Function function, FunctionBufferMappingType type) {
  if (function >= data_->functions.size())
    throw graph_object_creation_error("addFunctionBuffer: there is no function " + std::to_string(function) + " among the graph's " +
                                      std::to_string(data_->functions.size()));
  return FunctionBuffer(function, type);
}

} // namespace poplar
