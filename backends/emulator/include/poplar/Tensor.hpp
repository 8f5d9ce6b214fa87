// A view of elements of the graph's variables.
#ifndef SNNC_POPLAR_TENSOR_HPP
#define SNNC_POPLAR_TENSOR_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <poplar/ArrayRef.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Type.hpp>
#include <poplar/UpsampleMethod.hpp>
#include <poplar/core/Language.hpp>

namespace poplar {

namespace core {
struct TensorData;
}

/// A variable of the graph.
class VariableRef {
public:
  VariableRef() = default;
  explicit VariableRef(std::uint32_t variableId) : id_(variableId) {}
  std::uint32_t id() const { return id_; }
  bool operator==(const VariableRef &other) const { return id_ == other.id_; }
  bool operator!=(const VariableRef &other) const { return id_ != other.id_; }
  bool operator<(const VariableRef &other) const { return id_ < other.id_; }

private:
  std::uint32_t id_ = ~0u;
};

/// Elements of a variable.
struct VariableInterval {
  VariableRef var;
  Interval interval;
  bool operator==(const VariableInterval &other) const { return var == other.var && interval == other.interval; }
  bool operator!=(const VariableInterval &other) const { return !(*this == other); }
  bool operator<(const VariableInterval &other) const { return var < other.var || (var == other.var && interval < other.interval); }
};
std::ostream &operator<<(std::ostream &os, const VariableInterval &interval);

class Tensor {
public:
  Tensor();
  Tensor(const Tensor &other);
  Tensor(Tensor &&other) noexcept;
  Tensor &operator=(const Tensor &other);
  Tensor &operator=(Tensor &&other) noexcept;
  ~Tensor();
  bool valid() const { return data_ != nullptr; }

  Tensor operator[](std::size_t i) const;
  Tensor slice(std::size_t begin, std::size_t end, unsigned dimension) const;
  Tensor slice(std::size_t begin, std::size_t end) const { return slice(begin, end, 0); }
  Tensor slice(const Interval &region, unsigned dimension = 0) const;
  Tensor slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const;
  std::vector<Tensor> slices(ArrayRef<Interval> intervals, unsigned dimension = 0) const;
  std::vector<Tensor> slices(std::initializer_list<Interval> intervals, unsigned dimension = 0) const {
    return slices(ArrayRef<Interval>(intervals.begin(), intervals.size()), dimension);
  }
  std::vector<Tensor> slices(const std::vector<Interval> &intervals, unsigned dimension = 0) const {
    return slices(ArrayRef<Interval>(intervals), dimension);
  }
  std::vector<Tensor> slices(const std::vector<std::vector<Interval>> &intervals, unsigned dimension = 0) const;
  /// Slices of one index each; templates, so that braces denote intervals.
  template <class Index, class = core::EnableIf<std::is_same<Index, unsigned>::value>>
  std::vector<Tensor> slices(ArrayRef<Index> indices, unsigned dimension = 0) const {
    std::vector<Tensor> found;
    for (const unsigned index : indices)
      found.push_back(slice(index, std::size_t(index) + 1, dimension));
    return found;
  }
  template <class Index, class = core::EnableIf<std::is_same<Index, unsigned>::value>>
  std::vector<Tensor> slices(const std::vector<Index> &indices, unsigned dimension = 0) const {
    return slices(ArrayRef<Index>(indices), dimension);
  }
  Tensor index(ArrayRef<std::size_t> indices) const;
  Tensor flatten() const;
  Tensor flatten(unsigned dimBegin, unsigned dimEnd) const;
  Tensor reshape(ArrayRef<std::size_t> shape) const;
  Tensor reshapePartial(unsigned beginIndex, unsigned endIndex, ArrayRef<std::size_t> newDims) const;
  Tensor dimShuffle(ArrayRef<unsigned> permutation) const;
  Tensor dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const;
  Tensor dimRoll(unsigned dimIdx, unsigned newIdx = 0) const;
  Tensor transpose() const;
  Tensor expand(ArrayRef<std::size_t> indices) const;
  Tensor squeeze(ArrayRef<std::size_t> indices) const;
  Tensor subSample(unsigned stride, unsigned dimension) const;
  Tensor upsample(unsigned scale, unsigned dimension, UpsampleMethod method = UpsampleMethod::REPEAT) const;
  Tensor broadcast(unsigned n, unsigned dimension) const;
  Tensor reverse(unsigned dimension) const;
  Tensor reinterpret(Type type) const;

  std::size_t numElements() const;
  std::size_t dim(unsigned i) const;
  const std::vector<std::size_t> &shape() const;
  unsigned rank() const;
  Type elementType() const;
  bool isContiguous() const;
  bool containsAliases() const;
  bool containsConstant() const;
  bool isParallelWriteable() const { return !containsAliases() && !containsConstant(); }
  bool intersectsWith(const Tensor &other) const;
  /// Ranges of this (flattened) tensor that are contiguous in their variables.
  std::vector<Interval> getContiguousRegions() const;
  /// The ranges of variables that its elements consist of, in order.
  std::vector<VariableInterval> getVarRegions() const;
  /// Prints name and shape, and the ranges.
  void output(std::ostream &os) const;
  void outputRegions(std::ostream &os) const;
  /// Prints them to the standard error stream.
  void dump() const;
  void dumpRegions() const;
  /// The metadata that specify how the bits of quarters are interpreted: see poplar/MetadataCreation.hpp. Throws tensor_metadata_error if there
  /// are none.
  bool hasMetadata() const;
  Tensor getMetadata() const;
  std::string shapeToString() const;
  std::string getDebugStr() const;
  std::string getName() const;
  bool operator==(const Tensor &other) const;
  bool operator!=(const Tensor &other) const { return !(*this == other); }

  /// Internal to the emulator.
  explicit Tensor(std::shared_ptr<const core::TensorData> data) : data_(std::move(data)) {}
  const core::TensorData &data() const;

private:
  std::shared_ptr<const core::TensorData> data_;
};

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension = 0);
inline Tensor concat(const std::vector<Tensor> &tensors, unsigned dimension = 0) {
  return concat(ArrayRef<Tensor>(tensors), dimension);
}
inline Tensor concat(std::initializer_list<Tensor> tensors, unsigned dimension = 0) {
  return concat(ArrayRef<Tensor>(tensors.begin(), tensors.size()), dimension);
}
Tensor concat(const Tensor &first, const Tensor &second, unsigned dimension = 0);
/// `value`, with one dimension less, is appended along `dimension`.
Tensor append(const Tensor &tensor, const Tensor &value, unsigned dimension);
Tensor append(const Tensor &tensor, const Tensor &value);
std::ostream &operator<<(std::ostream &os, const Tensor &tensor);

} // namespace poplar

#endif
