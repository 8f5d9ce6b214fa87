// Contents of a Graph.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <poplar/Graph.hpp>

#include "codelets.hpp"
#include "mapping.hpp"
#include "view.hpp"

namespace poplar::core {

struct TensorData {
  GraphData *graph;
  Type type;
  View view;
};

struct Variable {
  std::string name;
  Type type;
  std::vector<std::size_t> shape;
  Index elements;
  bool constant = false;
  /// Bytes of a constant.
  std::vector<char> value;
  /// The vertex on whose tile it is stored: a constant created by connecting a field to a value.
  std::uint32_t owner = ~0u;
  TileMap tiles;
  /// For quarters: the tensor that specifies how their bits are interpreted.
  std::shared_ptr<const TensorData> metadata;
};

/// The elements connected to one edge, or to one row of a list field.
struct Edge {
  std::uint32_t field;
  /// Row of a list field.
  std::uint32_t row;
  std::uint32_t firstBlock, numBlocks;
  Index elements;
};

struct FieldValue {
  std::uint32_t vertex, field;
  std::vector<HostValue> values;
};

constexpr std::uint64_t noEstimate = ~std::uint64_t(0);

struct VertexData {
  const VertexType *type;
  std::uint32_t computeSet;
  std::uint32_t tile = ~0u;
  std::uint64_t perfEstimate = noEstimate, flops = 0;
  std::vector<Edge> edges;
  /// Its initial values are between these indices of GraphData::fieldValues.
  std::size_t firstValue = ~std::size_t(0), endValue = 0;
};

struct ComputeSetData {
  std::string name;
  std::vector<std::uint32_t> vertices;
};

struct HostHandle {
  TensorData tensor;
  bool write, read;
};

struct TensorValue {
  TensorData tensor;
  std::vector<HostValue> values;
};

/// The target that a virtual graph sees, and its tiles.
struct TileSelection {
  Target target;
  std::vector<unsigned> tiles;
};

struct GraphData {
  /// The machine of one replica.
  Target target;
  unsigned replicas = 1;
  /// Constants that contain the number of the replica.
  std::vector<std::uint32_t> replicaIndices;
  std::vector<Variable> variables;
  std::vector<VertexData> vertices;
  std::vector<Block> blocks;
  std::vector<ComputeSetData> computeSets;
  std::vector<FieldValue> fieldValues;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> fieldSizes;
  std::vector<TensorValue> tensorValues;
  std::map<std::string, HostHandle> handles;
  std::vector<DataStream> streams;
  std::vector<RemoteBuffer> remotes;
  std::vector<program::Program> functions;
  CodeletLibrary codelets;
  /// By vertex type.
  std::map<std::string, PerfEstimateFunc> perfEstimators;
  /// Libraries whose codelets were added, such as "popops".
  std::set<std::string> libraries;
  std::unordered_map<std::string, const VertexType *> typeCache;

  std::string vertexName(std::uint32_t vertex) const;
  /// The estimate of the program, or of an estimator for the vertex's type; cycles of noEstimate if there is neither.
  VertexPerfEstimate perfEstimateOf(std::uint32_t vertex) const;
  /// "history[12:40]"
  std::string elementName(std::uint32_t variable, Index begin, Index end) const;
};

/// Throws graph_connection_error if the tensor belongs to another graph.
void requireOwn(const GraphData &graph, const Tensor &tensor, const std::string &user);
/// `value` as the bytes of one element.
void writeValue(char *out, Type type, const HostValue &value);
Tensor makeTensor(GraphData *graph, Type type, View view);
std::string shapeText(const std::vector<std::size_t> &shape);
std::vector<std::size_t> toVector(ArrayRef<std::size_t> values);

} // namespace poplar::core
