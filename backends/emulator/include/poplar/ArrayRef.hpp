// A view of consecutive values, made from a vector, an initialiser list or a pointer.
#ifndef SNNC_POPLAR_ARRAY_REF_HPP
#define SNNC_POPLAR_ARRAY_REF_HPP

#include <array>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace poplar {

template <class T> class ArrayRef {
public:
  ArrayRef() = default;
  ArrayRef(const T *data, std::size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T> &values) : data_(values.data()), size_(values.size()) {}
  template <std::size_t N> ArrayRef(const std::array<T, N> &values) : data_(values.data()), size_(N) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  ArrayRef(std::initializer_list<T> values) : data_(values.begin()), size_(values.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }
  const T *data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T &operator[](std::size_t i) const { return data_[i]; }
  std::vector<T> cloneAsVector() const { return {begin(), end()}; }

private:
  const T *data_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace poplar

#endif
