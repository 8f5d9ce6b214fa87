// Vectors of the IPU's registers, under names that programs do not use.
#ifndef SNNC_POPLAR_SHORT_VECTORS_HPP
#define SNNC_POPLAR_SHORT_VECTORS_HPP

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <poplar/HalfFloat.hpp>

// Vectors as classes: their elements have names (v.x), unlike the compiler's own vectors.
template <class T, unsigned N> struct snnc_elements;
template <class T> struct alignas(2 * sizeof(T)) snnc_elements<T, 2> {
  T x, y;
};
template <class T> struct alignas(4 * sizeof(T)) snnc_elements<T, 4> {
  T x, y, z, w;
};

#if defined(__F16C__) && !defined(__clang__)
// GCC converts the halves of its own vectors one by one; the CPU converts four at once.
#define SNNC_HALVES_AT_ONCE
typedef short snnc_eight_halves __attribute__((vector_size(16)));
typedef long long snnc_two_words __attribute__((vector_size(16)));
typedef float snnc_four_floats __attribute__((vector_size(16)));
/// All bits of a vector of halves, in a register.
template <class Vector> using snnc_bits = std::conditional_t<sizeof(Vector) == 8, unsigned long long, unsigned>;
template <class Vector> inline snnc_four_floats snnc_widened(const Vector &halves) {
  snnc_bits<Vector> bits;
  std::memcpy(&bits, &halves, sizeof halves);
  return __builtin_ia32_vcvtph2ps((snnc_eight_halves)snnc_two_words{(long long)bits, 0});
}
/// Rounds each element to the nearest half, ties to even.
template <class Vector> inline Vector snnc_narrowed(snnc_four_floats floats) {
  const snnc_bits<Vector> bits = snnc_bits<Vector>(((snnc_two_words)__builtin_ia32_vcvtps2ph(floats, 0))[0]);
  Vector halves;
  std::memcpy(&halves, &bits, sizeof halves);
  return halves;
}
#endif

template <class T, unsigned N> struct snnc_vector : snnc_elements<T, N> {
  using Mask = snnc_vector<std::conditional_t<sizeof(T) == 4, int, std::conditional_t<sizeof(T) == 2, short, signed char>>, N>;
  snnc_vector() = default;
  /// All elements equal, or each given; missing ones are zero.
  constexpr snnc_vector(T value) : snnc_elements<T, N>(same(value)) {}
  template <class A, class B, class... Rest>
  constexpr snnc_vector(A first, B second, Rest... rest)
      : snnc_elements<T, N>{static_cast<T>(first), static_cast<T>(second), static_cast<T>(rest)...} {
    static_assert(sizeof...(Rest) + 2 <= N, "too many elements");
  }
  static constexpr snnc_elements<T, N> same(T value) {
    if constexpr (N == 2)
      return {value, value};
    else
      return {value, value, value, value};
  }
  T &operator[](std::size_t i) { return (&this->x)[i]; }
  const T &operator[](std::size_t i) const { return (&this->x)[i]; }
  /// The same bits, like a cast between vectors.
  template <class U, unsigned M, class = std::enable_if_t<sizeof(U) * M == sizeof(T) * N>> explicit operator snnc_vector<U, M>() const {
    snnc_vector<U, M> other;
    std::memcpy(&other, this, sizeof other);
    return other;
  }

#if defined(SNNC_HALVES_AT_ONCE)
#define SNNC_HALVES_OPERATOR(op)                                                                                                 \
  if constexpr (std::is_same_v<T, half>)                                                                                         \
    return snnc_narrowed<snnc_vector>(snnc_widened(a) op snnc_widened(b));                                                       \
  else
#else
#define SNNC_HALVES_OPERATOR(op)
#endif
#define SNNC_VECTOR_OPERATOR(op, ALL_AT_ONCE)                                                                                    \
  friend snnc_vector operator op(const snnc_vector &a, const snnc_vector &b) {                                                   \
    ALL_AT_ONCE {                                                                                                                \
      snnc_vector result;                                                                                                        \
      for (unsigned i = 0; i < N; ++i)                                                                                           \
        result[i] = static_cast<T>(a[i] op b[i]);                                                                                \
      return result;                                                                                                                  \
    }                                                                                                                            \
  }                                                                                                                              \
  snnc_vector &operator op##=(const snnc_vector &b) { return *this = *this op b; }
  SNNC_VECTOR_OPERATOR(+, SNNC_HALVES_OPERATOR(+))
  SNNC_VECTOR_OPERATOR(-, SNNC_HALVES_OPERATOR(-))
  SNNC_VECTOR_OPERATOR(*, SNNC_HALVES_OPERATOR(*))
  SNNC_VECTOR_OPERATOR(/, SNNC_HALVES_OPERATOR(/))
  SNNC_VECTOR_OPERATOR(%, )
  SNNC_VECTOR_OPERATOR(&, )
  SNNC_VECTOR_OPERATOR(|, )
  SNNC_VECTOR_OPERATOR(^, )
  SNNC_VECTOR_OPERATOR(<<, )
  SNNC_VECTOR_OPERATOR(>>, )
#undef SNNC_VECTOR_OPERATOR
#undef SNNC_HALVES_OPERATOR
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

#if defined(SNNC_VECTOR_CLASSES) || defined(SNNC_HALF_VECTOR_CLASSES)
#define SNNC_HALF_VECTOR(n, bytes, name) using snnc_##name = snnc_vector<half, n>;

template <class Vector> inline constexpr unsigned snnc_lanes = sizeof(Vector) / sizeof(std::declval<Vector &>()[0]);
/// Converts element by element, both classes and the compiler's vectors.
template <class To, class From> inline To snnc_converted(const From &from) {
  static_assert(snnc_lanes<To> == snnc_lanes<From>, "vectors of different lengths");
#if defined(SNNC_HALVES_AT_ONCE)
  using Element = std::remove_cv_t<std::remove_reference_t<decltype(from[0])>>;
  using Target = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<To &>()[0])>>;
  if constexpr (std::is_same_v<Element, half> && std::is_same_v<Target, float> && sizeof(To) <= 16) {
    const snnc_four_floats floats = snnc_widened(from);
    To to;
    std::memcpy(&to, &floats, sizeof to);
    return to;
  }
#endif
  To to{};
  for (unsigned i = 0; i < snnc_lanes<To>; ++i)
    to[i] = static_cast<std::remove_reference_t<decltype(to[0])>>(from[i]);
  return to;
}
#define __builtin_convertvector(vector, Type) snnc_converted<Type>(vector)
#elif defined(__clang__)
#define SNNC_HALF_VECTOR(n, bytes, name) typedef half snnc_##name __attribute__((ext_vector_type(n)));
#else
#define SNNC_HALF_VECTOR(n, bytes, name) typedef half snnc_##name __attribute__((vector_size(bytes)));
#endif
#if defined(SNNC_VECTOR_CLASSES)
#define SNNC_SHORT_VECTOR(T, n, bytes, name) using snnc_##name = snnc_vector<T, n>;
#elif defined(__clang__)
#define SNNC_SHORT_VECTOR(T, n, bytes, name) typedef T snnc_##name __attribute__((ext_vector_type(n)));
#else
#define SNNC_SHORT_VECTOR(T, n, bytes, name) typedef T snnc_##name __attribute__((vector_size(bytes)));
#endif

SNNC_SHORT_VECTOR(float, 2, 8, float2)
SNNC_SHORT_VECTOR(float, 4, 16, float4)
SNNC_HALF_VECTOR(2, 4, half2)
SNNC_HALF_VECTOR(4, 8, half4)
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
#undef SNNC_HALF_VECTOR

#endif
