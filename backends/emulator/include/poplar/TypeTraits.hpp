// What the host knows of a type.
#ifndef SNNC_POPLAR_TYPE_TRAITS_HPP
#define SNNC_POPLAR_TYPE_TRAITS_HPP

#include <cstddef>
#include <type_traits>

#include <poplar/Type.hpp>

namespace poplar {

/// Size and alignment of a type; a simple one is a number.
struct TypeTraits {
  template <class T> static constexpr TypeTraits make() {
    return {sizeof(T), alignof(T), std::is_arithmetic_v<T> || std::is_same_v<T, half>};
  }
  template <class T> static constexpr bool isSimpleType() { return make<T>().isSimple; }
  std::size_t size, align;
  bool isSimple;
};

} // namespace poplar

#endif
