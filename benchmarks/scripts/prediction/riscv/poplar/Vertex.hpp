// Stand-in for the vendor's header: the fields of a vertex are pointers, and a half number is a word that nothing computes with.
#ifndef SNNC_RISCV_VERTEX_HPP
#define SNNC_RISCV_VERTEX_HPP

struct half {
  unsigned short bits;
  explicit half(float);
  operator float() const;
};
typedef unsigned short half2 __attribute__((vector_size(4), may_alias));

namespace poplar {

enum class VectorLayout { ONE_PTR, SPAN };

template <class T, VectorLayout, unsigned Align = alignof(T)> struct Vector {
  T *data;
  template <class Index> T &operator[](Index i) const { return data[i]; }
};

template <class T> struct Edge {
  T *data;
  T &operator*() const { return *data; }
  operator T &() const { return *data; }
};
template <class T, VectorLayout L, unsigned A> struct Edge<Vector<T, L, A>> : Vector<T, L, A> {
  operator T *() const { return this->data; }
};

template <class T> struct Input : Edge<T> {};
template <class T> struct Output : Edge<T> {};
template <class T> struct InOut : Edge<T> {};

struct Vertex {};
struct MultiVertex {};

} // namespace poplar
#endif
