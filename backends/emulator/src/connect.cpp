// Vertices and their connections.
#include <poplar/Graph.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>

#include "graph_data.hpp"

namespace poplar {

ConnectionDesc::ConnectionDesc(std::string fieldName, Tensor tensor) : field(std::move(fieldName)), tensors{std::move(tensor)} {}
ConnectionDesc::ConnectionDesc(std::string fieldName, std::vector<Tensor> list)
    : field(std::move(fieldName)), tensors(std::move(list)), isList(true) {}
ConnectionDesc::ConnectionDesc(std::string fieldName, HostValue constant) : field(std::move(fieldName)), value(constant), isValue(true) {}

using core::Field;
using core::FieldKind;
using core::Index;

namespace {

core::VertexData &vertexOf(core::GraphData &data, std::uint32_t id) {
  if (id >= data.vertices.size())
    throw graph_connection_error("a vertex that belongs to no graph was used");
  return data.vertices[id];
}

std::string fieldName(core::GraphData &data, const FieldRef &ref) {
  return "field '" + ref.name + "'" + (ref.index >= 0 ? "[" + std::to_string(ref.index) + "]" : "") + " of " + data.vertexName(ref.vertex);
}

void addEdge(core::GraphData &data, const FieldRef &ref, std::uint32_t field, std::uint32_t row, const Tensor &tensor) {
  core::VertexData &vertex = vertexOf(data, ref.vertex);
  const Field &f = vertex.type->fields[field];
  if (tensor.data().graph != &data)
    throw graph_connection_error(fieldName(data, ref) + " is connected to a tensor of another graph");
  if (tensor.elementType() != f.type)
    throw type_error(fieldName(data, ref) + " is of type " + f.type.toString() + ", tensor '" + tensor.getName() + "' of type " +
                     tensor.elementType().toString());
  for (const core::Edge &e : vertex.edges)
    if (e.field == field && e.row == row)
      throw graph_connection_error(fieldName(data, ref) + " is connected twice");
  core::Edge edge;
  edge.field = field;
  edge.row = row;
  edge.firstBlock = std::uint32_t(data.blocks.size());
  edge.elements = tensor.data().view.numElements();
  const std::vector<core::Block> blocks = core::blocksOf(tensor.data().view);
  edge.numBlocks = std::uint32_t(blocks.size());
  data.blocks.insert(data.blocks.end(), blocks.begin(), blocks.end());
  vertex.edges.push_back(edge);
}

void requireRank(core::GraphData &data, const FieldRef &ref, const Tensor &tensor, unsigned rank) {
  if (tensor.rank() != rank)
    throw graph_connection_error(fieldName(data, ref) + " needs a tensor of rank " + std::to_string(rank) + ", '" + tensor.getName() +
                                 "' has shape " + tensor.shapeToString());
}

} // namespace

ComputeSet Graph::addComputeSet(const DebugContext &context) {
  const std::size_t id = data_->computeSets.size();
  data_->computeSets.push_back({context.getPathName().empty() ? "computeset" + std::to_string(id) : context.getPathName(), {}});
  return ComputeSet(std::uint32_t(id));
}

VertexRef Graph::addVertex(ComputeSet computeSet, const std::string &vertexType) {
  if (computeSet.id >= data_->computeSets.size())
    throw graph_object_creation_error("addVertex: a compute set that belongs to no graph");
  const core::VertexType *&type = data_->typeCache[vertexType];
  if (!type)
    type = &data_->codelets.find(vertexType);
  core::VertexData vertex;
  vertex.type = type;
  vertex.computeSet = computeSet.id;
  if (data_->target.getNumTiles() == 1)
    vertex.tile = 0;
  vertex.edges.reserve(type->fields.size());
  const std::uint32_t id = std::uint32_t(data_->vertices.size());
  data_->vertices.push_back(std::move(vertex));
  data_->computeSets[computeSet.id].vertices.push_back(id);
  return VertexRef(id);
}

VertexRef Graph::addVertex(ComputeSet computeSet, const std::string &vertexType, ArrayRef<ConnectionDesc> connections) {
  const VertexRef vertex = addVertex(computeSet, vertexType);
  for (const ConnectionDesc &c : connections) {
    if (c.isValue)
      connect(vertex[c.field], c.value);
    else if (c.isList)
      connect(vertex[c.field], c.tensors);
    else
      connect(vertex[c.field], c.tensors[0]);
  }
  return vertex;
}

void Graph::connect(const FieldRef &ref, const Tensor &tensor) {
  core::VertexData &vertex = vertexOf(*data_, ref.vertex);
  const std::uint32_t field = vertex.type->fieldIndex(ref.name);
  const Field &f = vertex.type->fields[field];
  if (!f.isEdge())
    throw graph_connection_error(fieldName(*data_, ref) + " is not an edge: it takes a value, not a tensor");
  if (ref.index >= 0) {
    if (f.kind != FieldKind::List)
      throw graph_connection_error(fieldName(*data_, ref) + ": only lists of vectors have elements to connect");
    if (const auto size = data_->fieldSizes.find({ref.vertex, field}); size != data_->fieldSizes.end() && std::size_t(ref.index) >= size->second)
      throw index_error(fieldName(*data_, ref) + " is connected; the field has " + std::to_string(size->second) + " rows");
    requireRank(*data_, ref, tensor, 1);
    addEdge(*data_, ref, field, std::uint32_t(ref.index), tensor);
  } else if (f.kind == FieldKind::List) {
    requireRank(*data_, ref, tensor, 2);
    for (std::size_t row = 0; row < tensor.dim(0); ++row)
      addEdge(*data_, ref, field, std::uint32_t(row), tensor[row]);
    data_->fieldSizes[{ref.vertex, field}] = tensor.dim(0);
  } else {
    requireRank(*data_, ref, tensor, f.kind == FieldKind::Scalar ? 0 : 1);
    addEdge(*data_, ref, field, 0, tensor);
  }
}

void Graph::connect(const FieldRef &ref, ArrayRef<Tensor> tensors) {
  core::VertexData &vertex = vertexOf(*data_, ref.vertex);
  const std::uint32_t field = vertex.type->fieldIndex(ref.name);
  if (vertex.type->fields[field].kind == FieldKind::Vector) {
    std::vector<Tensor> flat;
    for (const Tensor &t : tensors)
      flat.push_back(t.flatten());
    connect(ref, concat(flat));
    return;
  }
  if (vertex.type->fields[field].kind != FieldKind::List)
    throw graph_connection_error(fieldName(*data_, ref) + " does not take a list of tensors");
  for (std::size_t row = 0; row < tensors.size(); ++row) {
    requireRank(*data_, ref, tensors[row], 1);
    addEdge(*data_, ref, field, std::uint32_t(row), tensors[row]);
  }
  data_->fieldSizes[{ref.vertex, field}] = tensors.size();
}

void Graph::connect(const FieldRef &ref, HostValue value) {
  core::VertexData &vertex = vertexOf(*data_, ref.vertex);
  const std::uint32_t field = vertex.type->fieldIndex(ref.name);
  const Field &f = vertex.type->fields[field];
  if (!f.isEdge()) {
    setInitialValues(ref, {value});
    return;
  }
  if (f.kind != FieldKind::Scalar || f.writes())
    throw graph_connection_error(fieldName(*data_, ref) + " cannot be connected to a constant");
  const Tensor constant = addConstantValues(f.type, {}, {value}, {});
  data_->variables.back().owner = ref.vertex;
  addEdge(*data_, ref, field, 0, constant);
}

void Graph::setFieldSize(const FieldRef &ref, std::size_t size) {
  core::VertexData &vertex = vertexOf(*data_, ref.vertex);
  const std::uint32_t field = vertex.type->fieldIndex(ref.name);
  for (std::size_t i = vertex.firstValue; i < vertex.endValue; ++i)
    if (const core::FieldValue &value = data_->fieldValues[i]; value.vertex == ref.vertex && value.field == field && value.values.size() > size)
      throw graph_connection_error(fieldName(*data_, ref) + " holds " + std::to_string(value.values.size()) +
                                   " initial values and cannot be made " + std::to_string(size) + " elements long");
  for (const core::Edge &edge : vertex.edges)
    if (edge.field == field && vertex.type->fields[field].kind == FieldKind::List && edge.row >= size)
      throw index_error(fieldName(*data_, ref) + " has row " + std::to_string(edge.row) + " connected and cannot be made " +
                        std::to_string(size) + " rows long");
  data_->fieldSizes[{ref.vertex, field}] = size;
}

void Graph::setInitialValues(const FieldRef &ref, const std::vector<HostValue> &values) {
  core::VertexData &vertex = vertexOf(*data_, ref.vertex);
  const std::uint32_t field = vertex.type->fieldIndex(ref.name);
  const Field &f = vertex.type->fields[field];
  if (f.kind == FieldKind::State) {
    const std::size_t size = data_->fieldSizes.emplace(std::make_pair(ref.vertex, field), values.size()).first->second;
    if (values.size() > size)
      throw graph_connection_error(fieldName(*data_, ref) + " has " + std::to_string(size) + " elements and was given " +
                                   std::to_string(values.size()) + " values");
  } else if (f.isEdge() || values.size() != 1)
    throw graph_connection_error(fieldName(*data_, ref) + " does not take an initial value of " + std::to_string(values.size()) + " elements");
  vertex.firstValue = std::min(vertex.firstValue, data_->fieldValues.size());
  data_->fieldValues.push_back({ref.vertex, field, values});
  vertex.endValue = data_->fieldValues.size();
}

void Graph::setPerfEstimate(const VertexRef &vertex, std::uint64_t cycles, std::uint64_t flops) {
  core::VertexData &v = vertexOf(*data_, vertex.id);
  v.perfEstimate = cycles;
  v.flops = flops;
}

VertexPerfEstimate Graph::getPerfEstimate(const VertexRef &vertex) const {
  vertexOf(*data_, vertex.id);
  const VertexPerfEstimate estimate = data_->perfEstimateOf(vertex.id);
  if (estimate.cycles == core::noEstimate)
    throw missing_perf_estimate(data_->vertexName(vertex.id) + " has no performance estimate: see setPerfEstimate, registerPerfEstimator");
  return estimate;
}

namespace {

class Introspector : public VertexIntrospector {
public:
  Introspector(const core::GraphData &data, std::uint32_t vertex) : data_(data), vertex_(vertex) {}

  FieldData getFieldInfo(const std::string &name) const override {
    const core::VertexData &vertex = data_.vertices[vertex_];
    const std::uint32_t field = vertex.type->fieldIndex(name);
    const core::Field &f = vertex.type->fields[field];
    std::vector<std::size_t> rows(f.kind == FieldKind::List ? 0 : 1, f.kind == FieldKind::Value ? 1 : 0);
    if (const auto size = data_.fieldSizes.find({vertex_, field}); size != data_.fieldSizes.end())
      f.kind == FieldKind::List ? rows.resize(size->second) : void(rows[0] = size->second);
    for (const core::Edge &edge : vertex.edges)
      if (edge.field == field) {
        rows.resize(std::max<std::size_t>(rows.size(), edge.row + 1));
        rows[edge.row] = std::size_t(edge.elements);
      }
    std::vector<double> values;
    for (std::size_t i = vertex.firstValue; i < vertex.endValue; ++i)
      if (const core::FieldValue &value = data_.fieldValues[i]; value.vertex == vertex_ && value.field == field)
        for (const HostValue &v : value.values)
          values.push_back(v.isFloat ? v.real : double(v.integer));
    return FieldData(f.kind == FieldKind::List, std::move(rows), std::move(values));
  }

private:
  const core::GraphData &data_;
  const std::uint32_t vertex_;
};

} // namespace

VertexPerfEstimate core::GraphData::perfEstimateOf(std::uint32_t vertex) const {
  const VertexData &v = vertices[vertex];
  if (v.perfEstimate != noEstimate)
    return VertexPerfEstimate(v.perfEstimate, v.flops);
  const auto estimator = perfEstimators.find(v.type->name);
  return estimator == perfEstimators.end() ? VertexPerfEstimate(noEstimate) : estimator->second(Introspector(*this, vertex), target);
}

void Graph::setTileMapping(const VertexRef &vertex, unsigned tile) {
  core::VertexData &v = vertexOf(*data_, vertex.id);
  v.tile = physicalTile(tile, data_->vertexName(vertex.id));
}

} // namespace poplar
