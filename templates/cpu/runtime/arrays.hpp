// Aligned arrays, and the distances between their rows.
#ifndef SNNC_ARRAYS_HPP
#define SNNC_ARRAYS_HPP

#include "bfloat16.hpp"
#include "constants.hpp"

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace snnc {

/// Returns `n` rounded up to whole cache lines; rows begin on cache lines and are padded to whole lines.
constexpr std::size_t padded(std::size_t n) { return (n + LINE - 1) / LINE * LINE; }
/// Returns the distance between rows: one line more than needed if the rows would otherwise map to few cache sets and evict each other.
constexpr std::size_t pitch(std::size_t n) { return padded(n) % (8 * LINE) == 0 ? padded(n) + LINE : padded(n); }

/// An array that is aligned to cache lines; `resize` discards its contents and fills it with zeros.
template <class T> class Array {
public:
  Array() = default;
  explicit Array(std::size_t n) { resize(n); }
  Array(Array &&other) noexcept { swap(other); }
  Array &operator=(Array &&other) noexcept {
    swap(other);
    return *this;
  }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() { release(); }

  void resize(std::size_t n) {
    if (n != length) {
      release();
      if (n != 0)
        numbers = static_cast<T *>(::operator new(padded(n) * sizeof(T), std::align_val_t(64)));
      length = n;
    }
    clear();
  }
  /// Makes space for `n` elements without filling it; the old contents are lost.
  void reserve(std::size_t n) {
    if (n > length) {
      release();
      numbers = static_cast<T *>(::operator new(padded(n) * sizeof(T), std::align_val_t(64)));
      length = n;
    }
  }
  void clear() {
    if (length != 0)
      std::memset(static_cast<void *>(numbers), 0, padded(length) * sizeof(T));
  }
  void swap(Array &other) noexcept {
    std::swap(numbers, other.numbers);
    std::swap(length, other.length);
  }
  std::size_t size() const { return length; }
  T *data() { return numbers; }
  const T *data() const { return numbers; }
  T &operator[](std::size_t i) { return numbers[i]; }
  const T &operator[](std::size_t i) const { return numbers[i]; }

private:
  T *numbers = nullptr;
  std::size_t length = 0;
  void release() {
    if (numbers != nullptr)
      ::operator delete(numbers, std::align_val_t(64));
    numbers = nullptr;
    length = 0;
  }
};

/// One T for each worker.
template <class T> class PerWorker {
public:
  PerWorker();
  ~PerWorker();
  void resize(std::size_t workers);
  T &operator[](std::size_t worker) { return all.data()[worker]; }

private:
  std::vector<T> all;
};

template <class T> PerWorker<T>::PerWorker() = default;
template <class T> PerWorker<T>::~PerWorker() = default;
template <class T> void PerWorker<T>::resize(std::size_t workers) { all.resize(workers); }

// Most networks use these, so values.cpp compiles them once for all.
extern template class Array<float>;
extern template class Array<std::uint32_t>;
extern template class Array<BFloat16>;
extern template class PerWorker<Array<float>>;

} // namespace snnc

#endif
