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
#include <poplar/DataStream.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/Device.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Program.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <poplar/VertexRef.hpp>

namespace poplar {

namespace core {
struct GraphData;
}

enum class VariableMappingMethod { NONE, LINEAR };
enum class CodeletFileType { PreprocessedAsm, Asm, IpuMachineCode, CSource, CppSource, CxxSource, Object, Auto };
enum class TensorCloneMethod { PRESERVE_ORDER_AND_ALIASES, CREATE_NEW_ORDER, PRESERVE_ORDER_UNLESS_ALIASES, GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES };

/// A value of the host with its device type, as bytes.
struct HostValue {
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, half>>>
  HostValue(T value) : isFloat(!std::is_integral_v<T>), real(double(value)), integer(toInteger(value)) {}

  bool isFloat;
  double real;
  std::int64_t integer;

private:
  template <class T> static std::int64_t toInteger(T value) {
    if constexpr (std::is_integral_v<T>)
      return std::int64_t(value);
    else
      return 0;
  }
};

/// One connection of a new vertex.
struct ConnectionDesc {
  ConnectionDesc(std::string fieldName, Tensor tensor) : field(std::move(fieldName)), tensors{std::move(tensor)} {}
  ConnectionDesc(std::string fieldName, std::vector<Tensor> list) : field(std::move(fieldName)), tensors(std::move(list)), isList(true) {}
  ConnectionDesc(std::string fieldName, HostValue constant) : field(std::move(fieldName)), value(constant), isValue(true) {}

  std::string field;
  std::vector<Tensor> tensors;
  HostValue value{0};
  bool isList = false;
  bool isValue = false;
};

class Graph {
public:
  using TileToTensorMapping = std::vector<std::vector<Interval>>;

  explicit Graph(const Target &target);
  explicit Graph(const Device &device) : Graph(device.getTarget()) {}
  Graph(Graph &&) noexcept;
  Graph &operator=(Graph &&) noexcept;
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();

  const Target &getTarget() const;

  bool addCodelets(const std::string &path, CodeletFileType type = CodeletFileType::Auto, const std::string &compileFlags = "");
  bool addCodelets(const char *path, CodeletFileType type = CodeletFileType::Auto, const std::string &compileFlags = "") {
    return addCodelets(std::string(path), type, compileFlags);
  }
  void addCodelets(ArrayRef<std::string> paths, const std::string &compileFlags = "");
  void addCodelets(std::initializer_list<const char *> paths, const std::string &compileFlags = "");
  void addCodelets(std::stringstream &stream, const std::string &compileFlags = "", CodeletFileType type = CodeletFileType::CppSource);

  Tensor addVariable(const Type &type, ArrayRef<std::size_t> shape, const DebugContext &context = {});
  Tensor addVariable(const Type &type, ArrayRef<std::size_t> shape, VariableMappingMethod method, const DebugContext &context = {});

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
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, half>>>
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, T value, const DebugContext &context = {}) {
    return addConstantValues(type, shape, {HostValue(value)}, context);
  }

  Tensor clone(const Type &type, const Tensor &tensor, const DebugContext &context = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);
  Tensor clone(const Tensor &tensor, const DebugContext &context = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES) {
    return clone(tensor.elementType(), tensor, context, method);
  }

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

  void setInitialValue(const FieldRef &field, HostValue value) { setInitialValues(field, {value}); }
  template <class T> void setInitialValue(const FieldRef &field, const std::vector<T> &values) {
    setInitialValues(field, toHostValues(ArrayRef<T>(values)));
  }
  template <class T> void setInitialValue(const FieldRef &field, ArrayRef<T> values) { setInitialValues(field, toHostValues(values)); }
  void setInitialValue(const Tensor &tensor, HostValue value) { setInitialValues(tensor, {value}); }
  template <class T> void setInitialValue(const Tensor &tensor, const std::vector<T> &values) {
    setInitialValues(tensor, toHostValues(ArrayRef<T>(values)));
  }
  template <class T> void setInitialValue(const Tensor &tensor, ArrayRef<T> values) { setInitialValues(tensor, toHostValues(values)); }

  /// Worker cycles of a Vertex, tile cycles of a MultiVertex.
  void setPerfEstimate(const VertexRef &vertex, std::uint64_t cycles, std::uint64_t flops = 0);
  void setCycleEstimate(const VertexRef &vertex, std::uint64_t cycles) { setPerfEstimate(vertex, cycles); }
  std::uint64_t getPerfEstimate(const VertexRef &vertex) const;

  void setTileMapping(const VertexRef &vertex, unsigned tile);
  void setTileMapping(const Tensor &tensor, unsigned tile);
  void setTileMapping(const Tensor &tensor, const TileToTensorMapping &mapping);
  TileToTensorMapping getTileMapping(const Tensor &tensor, bool requireComplete = true) const;
  TileToTensorMapping getTileMapping(const Tensor &tensor, bool *isComplete) const;

  void createHostWrite(const std::string &handle, const Tensor &tensor, bool rearrangeOnHost = false);
  void createHostRead(const std::string &handle, const Tensor &tensor, bool rearrangeOnHost = false);
  DataStream addHostToDeviceFIFO(const std::string &handle, const Type &type, std::size_t numElements, const OptionFlags &options = {});
  DataStream addDeviceToHostFIFO(const std::string &handle, const Type &type, std::size_t numElements, const OptionFlags &options = {});

  RemoteBuffer addRemoteBuffer(const std::string &handle, const Type &elementType, std::size_t numElements, std::size_t repeats = 1,
                               bool rearrangeOnHost = false, bool optimiseMemory = false);

  Function addFunction(const program::Program &program);

  /// Of the emulator itself.
  core::GraphData &data() const { return *data_; }
  const std::shared_ptr<core::GraphData> &sharedData() const { return data_; }

private:
  template <class T> static std::vector<HostValue> toHostValues(ArrayRef<T> values) {
    return std::vector<HostValue>(values.begin(), values.end());
  }
  Tensor addConstantValues(const Type &type, ArrayRef<std::size_t> shape, const std::vector<HostValue> &values, const DebugContext &context);
  void setInitialValues(const FieldRef &field, const std::vector<HostValue> &values);
  void setInitialValues(const Tensor &tensor, const std::vector<HostValue> &values);

  std::shared_ptr<core::GraphData> data_;
};

} // namespace poplar

#endif
