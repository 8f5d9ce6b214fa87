// What the host knows of a type.
#ifndef SNNC_POPLAR_TYPE_TRAITS_HPP
#define SNNC_POPLAR_TYPE_TRAITS_HPP

#include <cstddef>
#include <type_traits>

#include <poplar/Type.hpp>

namespace poplar {

/// Size and alignment of a type, and what kind of number it is; a simple one is a number.
struct TypeTraits {
  template <class T> static constexpr TypeTraits make() {
    constexpr bool isFloating = std::is_floating_point_v<T> || isHalf<T>;
    return {sizeof(T), alignof(T), isNumber<T>, isFloating, std::is_integral_v<T>, isFloating || std::is_signed_v<T>};
  }
  template <class T> static constexpr bool isSimpleType() { return isNumber<T>; }
  std::size_t size, align;
  bool isSimple, isFloat, isIntegral, isSigned;
};

} // namespace poplar

#endif
