// A vertex as seen by its performance estimator.
#ifndef SNNC_POPLAR_VERTEX_INTROSPECTOR_HPP
#define SNNC_POPLAR_VERTEX_INTROSPECTOR_HPP

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <poplar/IeeeHalf.hpp>

namespace poplar {

class Target;

/// The elements connected to one edge, or to one row of a list.
class SubFieldData {
public:
  explicit SubFieldData(std::size_t elements) : size_(elements) {}
  std::size_t size() const { return size_; }

private:
  std::size_t size_;
};

class FieldData {
public:
  /// Internal to the emulator: sizes of the rows, and initial values as numbers.
  FieldData(bool isList, std::vector<std::size_t> rows, std::vector<double> values)
      : isList_(isList), rows_(std::move(rows)), values_(std::move(values)) {}
  /// Rows of a list, elements of a vector, or 1.
  std::size_t size() const { return isList_ ? rows_.size() : rows_.empty() ? 0 : rows_[0]; }
  SubFieldData operator[](std::size_t row) const { return SubFieldData(rows_.at(row)); }
  template <class T> T getInitialValue(const Target &) const { return static_cast<T>(values_.at(0)); }
  template <class T> std::vector<T> getInitialValues(const Target &) const { return std::vector<T>(values_.begin(), values_.end()); }

private:
  bool isList_;
  std::vector<std::size_t> rows_;
  std::vector<double> values_;
};

class VertexIntrospector {
public:
  virtual ~VertexIntrospector() = default;
  /// Throws unknown_field.
  virtual FieldData getFieldInfo(const std::string &field) const = 0;
};

} // namespace poplar

#endif
