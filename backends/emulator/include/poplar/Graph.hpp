// The graph: variables, vertices, their connections and their tiles.
#ifndef SNNC_POPLAR_GRAPH_HPP
#define SNNC_POPLAR_GRAPH_HPP

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <poplar/ArrayRef.hpp>
#include <poplar/CodeletFileType.hpp>
#include <poplar/DataStream.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/Device.hpp>
#include <poplar/HostFunctionCallback.hpp>
#include <poplar/Interval.hpp>
#include <poplar/PerfEstimateFunc.hpp>
#include <poplar/Program.hpp>
#include <poplar/Quarter.hpp>
#include <poplar/ReplicatedStreamMode.hpp>
#include <poplar/SerializationFormat.hpp>
#include <poplar/StandardIncludes.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/TensorCloneMethod.hpp>
#include <poplar/Type.hpp>
#include <poplar/TypeTraits.hpp>
#include <poplar/VariableMappingMethod.hpp>
#include <poplar/VersionInfo.hpp>
#include <poplar/VertexRef.hpp>
#include <poplar/replication_factor.hpp>
#include <poplar/core/Language.hpp>

namespace poplar {

namespace core {
struct GraphData;
struct TileSelection;
}

/// A number of the host, as a floating-point number and, for integers and bool, as an integer.
struct HostValue {
  template <class T, class = core::EnableIf<core::IsNumber<T>::value>>
  HostValue(T value) : isFloat(!std::is_integral<T>::value), real(static_cast<double>(value)), integer(toInteger(value)) {}

  bool isFloat;
  double real;
  std::int64_t integer;

private:
  template <class T> static core::EnableIf<std::is_integral<T>::value, std::int64_t> toInteger(T value) { return std::int64_t(value); }
  template <class T> static core::EnableIf<!std::is_integral<T>::value, std::int64_t> toInteger(T) { return 0; }
};

/// One connection of a new vertex.
struct ConnectionDesc {
  ConnectionDesc(std::string fieldName, Tensor tensor);
  ConnectionDesc(std::string fieldName, std::vector<Tensor> list);
  ConnectionDesc(std::string fieldName, HostValue constant);

  std::string field;
  std::vector<Tensor> tensors;
  HostValue value{0};
  bool isList = false;
  bool isValue = false;
};

class Graph {
public:
  using TileToTensorMapping = std::vector<std::vector<Interval>>;

  /// A graph for the host's processor.
  Graph() : Graph(Target::createCPUTarget()) {}
  explicit Graph(const Target &target, replication_factor factor = replication_factor(1));
  explicit Graph(const Device &device, replication_factor factor = replication_factor(1)) : Graph(device.getTarget(), factor) {}
  Graph(Graph &&) noexcept;
  Graph &operator=(Graph &&) noexcept;
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();

  /// The machine that this graph sees: of one replica, or of a virtual graph's tiles.
  const Target &getTarget() const;
  unsigned getReplicationFactor() const;
  /// UNSIGNED_INT {}: the number of the replica that reads it.
  Tensor addReplicationIndexConstant(const DebugContext &context = {});

  /// Graphs of the same variables and vertices on some of the tiles: the first n, [lower, upper), or a list.
  Graph createVirtualGraph(unsigned numTilesPerIPU);
  Graph createVirtualGraph(unsigned lowerTile, unsigned upperTile);
  Graph createVirtualGraph(const std::vector<unsigned> &perIpuTiles);
  Graph getTopLevelGraph();

  /// `targetName` is ignored: codelets run on the host.
  bool addCodelets(const std::string &path, CodeletFileType type = CodeletFileType::Auto, const std::string &compileFlags = "",
                   const std::string &targetName = "");
  bool addCodelets(const char *path, CodeletFileType type = CodeletFileType::Auto, const std::string &compileFlags = "") {
    return addCodelets(std::string(path), type, compileFlags);
  }
  void addCodelets(ArrayRef<std::string> paths, const std::string &compileFlags = "");
  template <class Text, class = core::EnableIf<std::is_convertible<Text, std::string>::value>>
  void addCodelets(const std::vector<Text> &paths, const std::string &compileFlags = "") {
    for (const Text &path : paths)
      addCodelets(std::string(path), CodeletFileType::Auto, compileFlags);
  }
  void addCodelets(std::initializer_list<const char *> paths, const std::string &compileFlags = "");
  void addCodelets(std::stringstream &stream, const std::string &compileFlags = "", CodeletFileType type = CodeletFileType::CppSource);

  Tensor addVariable(const Type &type, ArrayRef<std::size_t> shape, const DebugContext &context = {});
  Tensor addVariable(const Type &type, ArrayRef<std::size_t> shape, VariableMappingMethod method, const DebugContext &context = {});
  /// Quarters whose bits are interpreted by `metadata` (a QUARTER_METADATA scalar).
  Tensor addVariable(const Type &type, const Tensor &metadata, ArrayRef<std::size_t> shape, const DebugContext &context = {});

  template <class T> Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, ArrayRef<T> values, const DebugContext &context = {}) {
    return addConstantValues(type, shape, toHostValues(values), context);
  }
  template <class T>
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, const std::vector<T> &values, const DebugContext &context = {}) {
    return addConstantValues(type, shape, toHostValues(ArrayRef<T>(values)), context);
  }
  template <class T>
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, std::initializer_list<T> values, const DebugContext &context = {}) {
    return addConstantValues(type, shape, toHostValues(ArrayRef<T>(values.begin(), values.size())), context);
  }
  template <class T> Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, const T *values, const DebugContext &context = {}) {
    std::size_t n = 1;
    for (std::size_t d : shape)
      n *= d;
    return addConstantValues(type, shape, toHostValues(ArrayRef<T>(values, n)), context);
  }
  /// Values of `type` in memory, which `traits` describe; one for all elements if `broadcast`.
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, const void *values, const TypeTraits &traits, bool broadcast,
                     const DebugContext &context = {});
  /// Quarters in the format and scale of `metadata`.
  template <class T>
  Tensor addConstant(const Type &type, const QuarterMetadata &metadata, ArrayRef<std::size_t> shape, ArrayRef<T> values,
                     const DebugContext &context = {}) {
    return addConstantQuarter(type, metadata, shape, std::vector<double>(values.begin(), values.end()), context);
  }
  template <class T>
  Tensor addConstant(const Type &type, const QuarterMetadata &metadata, ArrayRef<std::size_t> shape, const std::vector<T> &values,
                     const DebugContext &context = {}) {
    return addConstantQuarter(type, metadata, shape, std::vector<double>(values.begin(), values.end()), context);
  }
  template <class T, class = core::EnableIf<core::IsNumber<T>::value>>
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, T value, const DebugContext &context = {}) {
    return addConstantValues(type, shape, {HostValue(value)}, context);
  }

  /// Values given as the bits of halves.
  Tensor addConstantHalf(const Type &type, ArrayRef<std::size_t> shape, const std::uint16_t *bits, const DebugContext &context = {});
  Tensor addConstantHalf(const Type &type, ArrayRef<std::size_t> shape, std::uint16_t bits, const DebugContext &context = {});
  void setInitialValueHalf(const Tensor &tensor, ArrayRef<std::uint16_t> bits);
  void setInitialValueHalf(const FieldRef &field, ArrayRef<std::uint16_t> bits);

  Tensor clone(const Type &type, const Tensor &tensor, const DebugContext &context = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
  Tensor clone(const Tensor &tensor, const DebugContext &context = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES) {
    return clone(tensor.elementType(), tensor, context, method);
  }

  Tensor clone(const Type &type, const Tensor &metadata, const Tensor &tensor, const DebugContext &context = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);

  Tensor addLinearlyMappedVariable(const Type &type, ArrayRef<std::size_t> shape, const DebugContext &context = {}) {
    return addVariable(type, shape, VariableMappingMethod::LINEAR, context);
  }
  /// The first dimension of `cloned` is multiplied by the factor.
  Tensor cloneN(const Tensor &tensor, std::size_t n, const DebugContext &context = {});
  Tensor cloneN(const Type &type, const Tensor &tensor, std::size_t n, const DebugContext &context = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                TensorCloneDuplicationMethod duplication = TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION);

  ComputeSet addComputeSet(const DebugContext &context = {});
  VertexRef addVertex(ComputeSet computeSet, const std::string &vertexType);
  VertexRef addVertex(ComputeSet computeSet, const std::string &vertexType, ArrayRef<ConnectionDesc> connections);
  VertexRef addVertex(ComputeSet computeSet, const std::string &vertexType, std::initializer_list<ConnectionDesc> connections) {
    return addVertex(computeSet, vertexType, ArrayRef<ConnectionDesc>(connections.begin(), connections.size()));
  }

  void connect(const FieldRef &field, const Tensor &tensor);
  void connect(const FieldRef &field, ArrayRef<Tensor> tensors);
  void connect(const FieldRef &field, const std::vector<Tensor> &tensors) { connect(field, ArrayRef<Tensor>(tensors)); }
  void connect(const FieldRef &field, HostValue value);
  void setFieldSize(const FieldRef &field, std::size_t size);

  template <class T, class = core::EnableIf<core::IsNumber<T>::value>> void setInitialValue(const FieldRef &field, T value) {
    setInitialValues(field, {HostValue(value)});
  }
  template <class T> void setInitialValue(const FieldRef &field, const std::vector<T> &values) {
    setInitialValues(field, toHostValues(ArrayRef<T>(values)));
  }
  template <class T> void setInitialValue(const FieldRef &field, ArrayRef<T> values) { setInitialValues(field, toHostValues(values)); }
  template <class T> void setInitialValue(const FieldRef &field, std::initializer_list<T> values) {
    setInitialValues(field, toHostValues(ArrayRef<T>(values.begin(), values.size())));
  }
  template <class T, class = core::EnableIf<core::IsNumber<T>::value>> void setInitialValue(const Tensor &tensor, T value) {
    setInitialValues(tensor, {HostValue(value)});
  }
  template <class T> void setInitialValue(const Tensor &tensor, const std::vector<T> &values) {
    setInitialValues(tensor, toHostValues(ArrayRef<T>(values)));
  }
  template <class T> void setInitialValue(const Tensor &tensor, ArrayRef<T> values) { setInitialValues(tensor, toHostValues(values)); }
  template <class T> void setInitialValue(const Tensor &tensor, std::initializer_list<T> values) {
    setInitialValues(tensor, toHostValues(ArrayRef<T>(values.begin(), values.size())));
  }

  /// Worker cycles of a Vertex, tile cycles of a MultiVertex.
  void setPerfEstimate(const VertexRef &vertex, std::uint64_t cycles, std::uint64_t flops = 0);
  void setCycleEstimate(const VertexRef &vertex, std::uint64_t cycles) { setPerfEstimate(vertex, cycles); }
  /// Throws missing_perf_estimate if neither the program nor an estimator for the vertex's type provided one.
  VertexPerfEstimate getPerfEstimate(const VertexRef &vertex) const;
  std::uint64_t getCycleEstimate(const VertexRef &vertex) const { return getPerfEstimate(vertex).cycles; }
  /// Cost of vertices of a type that have no estimate of their own.
  void registerPerfEstimator(const std::string &vertexTypeName, PerfEstimateFunc estimator);
  void registerCycleEstimator(const std::string &vertexTypeName, CycleEstimateFunc estimator);
  std::size_t getNumVertices() const;
  std::size_t getNumVars() const;
  std::size_t getNumComputeSets() const;
  /// Ranges of a tensor in memory order, joined if consecutive.
  std::vector<std::vector<Interval>> getSortedContiguousRegions(const Tensor &tensor, ArrayRef<Interval> regions, bool removeAliases = false,
                                                                std::vector<std::size_t> *aliases = nullptr) const;
  /// A template, so that braces denote a list of intervals.
  template <class Part, class = core::EnableIf<std::is_same<Part, std::vector<Interval>>::value>>
  std::vector<std::vector<Interval>> getSortedContiguousRegions(const Tensor &tensor, const std::vector<Part> &regions, bool removeAliases = false,
                                                                std::vector<std::size_t> *aliases = nullptr) const {
    std::vector<Interval> all;
    for (const Part &part : regions)
      all.insert(all.end(), part.begin(), part.end());
    return getSortedContiguousRegions(tensor, ArrayRef<Interval>(all), removeAliases, aliases);
  }
  /// Sorts the elements of the flat tensor `t` in memory order, and reorders those of `ts`, which have as many elements, in the same way.
  void reorderToSimplify(Tensor *t, ArrayRef<Tensor *> ts, bool requireSimplestOrder = true) const;
  /// The tensor that was broadcast to `tensor`: with the same rank, and each dimension as short as its repetition allows.
  Tensor findUnbroadcastTensor(const Tensor &tensor) const;
  bool hasCodelet(const std::string &name) const;
  /// Maximum number of elements of a field, or (dimension 1) of a list field's row. Throws unknown_vertex_type, unknown_field, index_error.
  std::size_t getMaxFieldDim(const std::string &vertexName, const std::string &fieldName, unsigned dimIndex) const;
  /// The largest value that an element of a field can have; throws poplar_error if T cannot represent it.
  template <class T> T getMaxVertexFieldValueAs(const std::string &vertexName, const std::string &fieldName) const {
    return getTarget().getTypeLimitsMaxAs<T>(fieldType(vertexName, fieldName));
  }
  std::uint64_t getMaxVertexFieldValue(const std::string &vertexName, const std::string &fieldName) const {
    return getMaxVertexFieldValueAs<std::uint64_t>(vertexName, fieldName);
  }
  /// A virtual graph's tile in the machine's numbering, and the inverse, which throws index_error for a tile outside the graph.
  unsigned convertVirtualTileToPhysicalTile(unsigned virtualTileId) const { return physicalTile(virtualTileId, "a conversion"); }
  unsigned convertPhysicalTileToVirtualTile(unsigned physicalTileId) const;

  void setTileMapping(const VertexRef &vertex, unsigned tile);
  void setTileMapping(const Tensor &tensor, unsigned tile);
  void setTileMapping(const Tensor &tensor, const TileToTensorMapping &mapping);
  TileToTensorMapping getTileMapping(const Tensor &tensor, bool requireComplete = true) const;
  TileToTensorMapping getTileMapping(const Tensor &tensor, bool *isComplete) const;

  void createHostWrite(const std::string &handle, const Tensor &tensor, bool rearrangeOnHost = false);
  void createHostRead(const std::string &handle, const Tensor &tensor, bool rearrangeOnHost = false);
  DataStream addHostToDeviceFIFO(const std::string &handle, const Type &type, std::size_t numElements,
                                 ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE, const OptionFlags &options = {});
  DataStream addHostToDeviceFIFO(const std::string &handle, const Type &type, std::size_t numElements, const OptionFlags &options) {
    return addHostToDeviceFIFO(handle, type, numElements, ReplicatedStreamMode::REPLICATE, options);
  }
  DataStream addDeviceToHostFIFO(const std::string &handle, const Type &type, std::size_t numElements, const OptionFlags &options = {});

  /// A host function, to be connected by Engine::connectHostFunction.
  using HostFunctionArgument = poplar::HostFunctionArgument;
  HostFunction addHostFunction(const std::string &handle, ArrayRef<HostFunctionArgument> inputs, ArrayRef<HostFunctionArgument> outputs);

  RemoteBuffer addRemoteBuffer(const std::string &handle, const Type &elementType, std::size_t numElements, std::size_t repeats = 1,
                               bool rearrangeOnHost = false, bool optimiseMemory = false);
  /// Vertices and their variables, and compute sets in program order, both in the DOT language.
  void outputVertexGraph(std::ostream &os, ArrayRef<program::Program> programs = {}) const;
  void outputComputationGraph(std::ostream &os, ArrayRef<program::Program> programs = {}) const;
  void outputComputeGraph(std::ostream &os, ArrayRef<program::Program> programs = {}) const { outputComputationGraph(os, programs); }
  /// Binary: the same as in an Executable of the programs. JSON: variables, tiles, compute sets and vertices, for other tools.
  void serialize(std::ostream &os, ArrayRef<program::Program> programs, SerializationFormat format) const;
  void serialize(std::ostream &os, SerializationFormat format) const { serialize(os, ArrayRef<program::Program>(), format); }
  /// Tensors with their variables and tiles, for deserializeTensors of this graph or another.
  void serializeTensors(std::ostream &os, ArrayRef<Tensor> tensors, SerializationFormat format) const;
  /// New variables as they were written. Throws graph_object_load_error for any other contents of the stream.
  std::vector<Tensor> deserializeTensors(std::istream &is, SerializationFormat format);

  Function addFunction(const program::Program &program);
  /// Throws graph_object_creation_error for a function that is not in the graph.
  FunctionBuffer addFunctionBuffer(Function function, FunctionBufferMappingType type);

  /// Internal to the emulator.
  core::GraphData &data() const { return *data_; }
  const std::shared_ptr<core::GraphData> &sharedData() const { return data_; }

private:
  Graph(const Graph &graph, std::shared_ptr<const core::TileSelection> selection);
  Graph selected(std::vector<unsigned> tiles, unsigned perIpu) const;
  unsigned physicalTile(unsigned tile, const std::string &what) const;
  Type fieldType(const std::string &vertexName, const std::string &fieldName) const;
  template <class T> static std::vector<HostValue> toHostValues(ArrayRef<T> values) {
    return std::vector<HostValue>(values.begin(), values.end());
  }
  Tensor addConstantQuarter(const Type &type, const QuarterMetadata &metadata, ArrayRef<std::size_t> shape, const std::vector<double> &values,
                            const DebugContext &context);
  Tensor addConstantValues(const Type &type, ArrayRef<std::size_t> shape, const std::vector<HostValue> &values, const DebugContext &context);
  void setInitialValues(const FieldRef &field, const std::vector<HostValue> &values);
  void setInitialValues(const Tensor &tensor, const std::vector<HostValue> &values);

  std::shared_ptr<core::GraphData> data_;
  /// For a virtual graph: the target that it sees, and its tiles.
  std::shared_ptr<const core::TileSelection> selection_;
};

} // namespace poplar

#endif
