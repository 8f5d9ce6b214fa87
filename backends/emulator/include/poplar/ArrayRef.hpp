// A view of consecutive values, from a vector, an initialiser list or a pointer.
#ifndef SNNC_POPLAR_ARRAY_REF_HPP
#define SNNC_POPLAR_ARRAY_REF_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <vector>

namespace poplar {

template <class T> class ArrayRef {
public:
  using value_type = T;
  using reference = T &;
  using const_reference = const T &;
  using difference_type = std::ptrdiff_t;
  using size_type = std::size_t;
  using iterator = const T *;
  using const_iterator = const T *;

  ArrayRef() = default;
  ArrayRef(std::nullptr_t) = delete;
  ArrayRef(const T *data, std::size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T> &values) : data_(values.data()), size_(values.size()) {}
  template <std::size_t N> ArrayRef(const std::array<T, N> &values) : data_(values.data()), size_(N) {}
  template <std::size_t N> ArrayRef(const T (&values)[N]) : data_(values), size_(N) {}
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
  const T *cbegin() const { return data_; }
  const T *cend() const { return data_ + size_; }
  const T *data() const { return data_; }
  const T &front() const { return data_[0]; }
  const T &back() const { return data_[size_ - 1]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T &operator[](std::size_t i) const { return data_[i]; }
  std::vector<T> cloneAsVector() const { return {begin(), end()}; }
  static constexpr std::size_t max_size() { return std::numeric_limits<std::size_t>::max() / sizeof(T); }

private:
  const T *data_ = nullptr;
  std::size_t size_ = 0;
};

template <class T> bool operator==(const ArrayRef<T> &a, const ArrayRef<T> &b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}
template <class T> bool operator!=(const ArrayRef<T> &a, const ArrayRef<T> &b) { return !(a == b); }

} // namespace poplar

/// The name in newer versions.
namespace gccs {
using poplar::ArrayRef;
}

#endif
