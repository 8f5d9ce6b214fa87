// Fields of a vertex. Every edge is 16 bytes {pointer, count} with any layout; the emulator writes it by offset.
#ifndef SNNC_POPLAR_IN_OUT_TYPES_HPP
#define SNNC_POPLAR_IN_OUT_TYPES_HPP

#include <cstddef>
#include <cstdint>

namespace poplar {

enum class VectorLayout { NOT_APPLICABLE, ONE_PTR, SPAN, SHORT_SPAN, COMPACT_PTR, SCALED_PTR32, SCALED_PTR64, SCALED_PTR128 };
enum class VectorListLayout { NOT_APPLICABLE, ONE_PTR, COMPACT_PTR, DELTAN, COMPACT_DELTAN, DELTANELEMENTS };

/// A vector of elements in tile memory; only SPAN and SHORT_SPAN know their size.
template <class T, VectorLayout L = VectorLayout::SPAN, unsigned Align = alignof(T), bool Interleaved = false>
class Vector {
public:
  using value_type = T;
  T &operator[](std::size_t i) const { return data_[i]; }
  T &front() const { return data_[0]; }
  T *data() const { return data_; }
  T *begin() const { return data_; }
  operator T *() const { return data_; }
  unsigned size() const {
    static_assert(L == VectorLayout::SPAN || L == VectorLayout::SHORT_SPAN, "only SPAN and SHORT_SPAN vectors have a size");
    return count_;
  }
  T *end() const { return data_ + size(); }
  T &back() const { return data_[size() - 1]; }
  const Vector *operator->() const { return this; }

protected:
  T *data_;
  std::uint64_t count_; // not a type that a codelet writes, so sizes need not be reloaded after a store
};

/// A list of vectors; a row knows its size.
template <class T, VectorListLayout L = VectorListLayout::DELTAN, unsigned Align = alignof(T), bool Interleaved = false>
class VectorList {
public:
  using Row = Vector<T, VectorLayout::SPAN, Align, Interleaved>;
  Row &operator[](std::size_t i) const { return rows_[i]; }
  Row *begin() const { return rows_; }
  Row *end() const { return rows_ + count_; }
  unsigned size() const { return count_; }
  const VectorList *operator->() const { return this; }

protected:
  Row *rows_;
  std::uint64_t count_; // not a type that a codelet writes, so sizes need not be reloaded after a store
};

namespace detail {
/// One element in tile memory.
template <class T> class ScalarEdge {
public:
  T &operator*() const { return *data_; }
  T *operator->() const { return data_; }
  operator T &() const { return *data_; }
  T *data() const { return data_; }

protected:
  T *data_;
  std::uint64_t count_; // not a type that a codelet writes, so sizes need not be reloaded after a store
};
} // namespace detail

template <class T> class Input : public detail::ScalarEdge<T> {};
template <class T> class Output : public detail::ScalarEdge<T> {
public:
  Output &operator=(T value) {
    *this->data_ = value;
    return *this;
  }
};
template <class T> class InOut : public detail::ScalarEdge<T> {
public:
  InOut &operator=(T value) {
    *this->data_ = value;
    return *this;
  }
};

#define SNNC_EDGE_OF(Kind, ASSIGNED)                                                                                               \
  template <class T, VectorLayout L, unsigned A, bool I> class Kind<Vector<T, L, A, I>> : public Vector<T, L, A, I> {            \
  public:                                                                                                                        \
    const Vector<T, L, A, I> &operator*() const { return *this; }                                                                \
    ASSIGNED                                                                                                                     \
  };                                                                                                                             \
  template <class T, VectorListLayout L, unsigned A, bool I>                                                                     \
  class Kind<VectorList<T, L, A, I>> : public VectorList<T, L, A, I> {};
/// Assigning the whole object copies elements.
#define SNNC_ASSIGNED                                                                                                            \
  template <class Source> auto operator=(const Source &source)->decltype(source[0], *this) {                                     \
    for (unsigned i = 0; i < this->size(); ++i)                                                                                  \
      (*this)[i] = source[i];                                                                                                    \
    return *this;                                                                                                                \
  }
#define SNNC_NOT_ASSIGNED
SNNC_EDGE_OF(Input, SNNC_NOT_ASSIGNED)
SNNC_EDGE_OF(Output, SNNC_ASSIGNED)
SNNC_EDGE_OF(InOut, SNNC_ASSIGNED)
#undef SNNC_EDGE_OF
#undef SNNC_ASSIGNED
#undef SNNC_NOT_ASSIGNED

} // namespace poplar

#endif
