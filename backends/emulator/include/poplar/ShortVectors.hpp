// Vectors of the IPU's registers, under names that no program has.
#ifndef SNNC_POPLAR_SHORT_VECTORS_HPP
#define SNNC_POPLAR_SHORT_VECTORS_HPP

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <poplar/HalfFloat.hpp>

// Vectors as classes: their elements have names (v.x), which the compiler's own vectors lack.
template <class T, unsigned N> struct snnc_elements;
template <class T> struct alignas(2 * sizeof(T)) snnc_elements<T, 2> {
  T x, y;
};
template <class T> struct alignas(4 * sizeof(T)) snnc_elements<T, 4> {
  T x, y, z, w;
};

template <class T, unsigned N> struct snnc_vector : snnc_elements<T, N> {
  using Mask = snnc_vector<std::conditional_t<sizeof(T) == 4, int, std::conditional_t<sizeof(T) == 2, short, signed char>>, N>;
  snnc_vector() = default;
  /// Every element the same, or each its own; what is not given is zero.
  snnc_vector(T value) {
    for (unsigned i = 0; i < N; ++i)
      (*this)[i] = value;
  }
  template <class A, class B, class... Rest> snnc_vector(A first, B second, Rest... rest) {
    static_assert(sizeof...(Rest) + 2 <= N, "too many elements");
    const T values[N] = {static_cast<T>(first), static_cast<T>(second), static_cast<T>(rest)...};
    for (unsigned i = 0; i < N; ++i)
      (*this)[i] = values[i];
  }
  T &operator[](std::size_t i) { return (&this->x)[i]; }
  const T &operator[](std::size_t i) const { return (&this->x)[i]; }
  /// The same bits, as a cast between vectors is.
  template <class U, unsigned M, class = std::enable_if_t<sizeof(U) * M == sizeof(T) * N>> explicit operator snnc_vector<U, M>() const {
    snnc_vector<U, M> other;
    std::memcpy(&other, this, sizeof other);
    return other;
  }

#define SNNC_VECTOR_OPERATOR(op)                                                                                                 \
  friend snnc_vector operator op(snnc_vector a, const snnc_vector &b) {                                                          \
    for (unsigned i = 0; i < N; ++i)                                                                                             \
      a[i] = static_cast<T>(a[i] op b[i]);                                                                                       \
    return a;                                                                                                                    \
  }                                                                                                                              \
  snnc_vector &operator op##=(const snnc_vector &b) { return *this = *this op b; }
  SNNC_VECTOR_OPERATOR(+)
  SNNC_VECTOR_OPERATOR(-)
  SNNC_VECTOR_OPERATOR(*)
  SNNC_VECTOR_OPERATOR(/)
  SNNC_VECTOR_OPERATOR(%)
  SNNC_VECTOR_OPERATOR(&)
  SNNC_VECTOR_OPERATOR(|)
  SNNC_VECTOR_OPERATOR(^)
  SNNC_VECTOR_OPERATOR(<<)
  SNNC_VECTOR_OPERATOR(>>)
#undef SNNC_VECTOR_OPERATOR
#define SNNC_VECTOR_COMPARISON(op)                                                                                               \
  friend Mask operator op(const snnc_vector &a, const snnc_vector &b) {                                                          \
    Mask result;                                                                                                                 \
    for (unsigned i = 0; i < N; ++i)                                                                                             \
      result[i] = a[i] op b[i] ? -1 : 0;                                                                                         \
    return result;                                                                                                               \
  }
  SNNC_VECTOR_COMPARISON(==)
  SNNC_VECTOR_COMPARISON(!=)
  SNNC_VECTOR_COMPARISON(<)
  SNNC_VECTOR_COMPARISON(<=)
  SNNC_VECTOR_COMPARISON(>)
  SNNC_VECTOR_COMPARISON(>=)
#undef SNNC_VECTOR_COMPARISON
  friend snnc_vector operator-(snnc_vector a) {
    for (unsigned i = 0; i < N; ++i)
      a[i] = static_cast<T>(-a[i]);
    return a;
  }
  friend snnc_vector operator~(snnc_vector a) {
    for (unsigned i = 0; i < N; ++i)
      a[i] = static_cast<T>(~a[i]);
    return a;
  }
};

#if defined(SNNC_VECTOR_CLASSES)
#define SNNC_SHORT_VECTOR(T, n, bytes, name) using snnc_##name = snnc_vector<T, n>;
#else
#define SNNC_SHORT_VECTOR(T, n, bytes, name) typedef T snnc_##name __attribute__((vector_size(bytes)));
#endif

SNNC_SHORT_VECTOR(float, 2, 8, float2)
SNNC_SHORT_VECTOR(float, 4, 16, float4)
SNNC_SHORT_VECTOR(half, 2, 4, half2)
SNNC_SHORT_VECTOR(half, 4, 8, half4)
SNNC_SHORT_VECTOR(short, 2, 4, short2)
SNNC_SHORT_VECTOR(short, 4, 8, short4)
SNNC_SHORT_VECTOR(unsigned short, 2, 4, ushort2)
SNNC_SHORT_VECTOR(unsigned short, 4, 8, ushort4)
SNNC_SHORT_VECTOR(int, 2, 8, int2)
SNNC_SHORT_VECTOR(int, 4, 16, int4)
SNNC_SHORT_VECTOR(unsigned int, 2, 8, uint2)
SNNC_SHORT_VECTOR(unsigned int, 4, 16, uint4)
SNNC_SHORT_VECTOR(signed char, 2, 2, char2)
SNNC_SHORT_VECTOR(signed char, 4, 4, char4)
SNNC_SHORT_VECTOR(unsigned char, 2, 2, uchar2)
SNNC_SHORT_VECTOR(unsigned char, 4, 4, uchar4)
#undef SNNC_SHORT_VECTOR

#endif
