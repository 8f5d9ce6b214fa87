// Properties of a type on the host.
#ifndef SNNC_POPLAR_TYPE_TRAITS_HPP
#define SNNC_POPLAR_TYPE_TRAITS_HPP

#include <cstddef>
#include <type_traits>

#include <poplar/Type.hpp>
#include <poplar/core/Language.hpp>

namespace poplar {

/// Size and alignment of a type, and its kind of number; a simple type is a number.
struct TypeTraits {
  template <class T> static constexpr TypeTraits make() {
    return {sizeof(T),           alignof(T), core::IsNumber<T>::value, IsFloating<T>::value, std::is_integral<T>::value,
            IsFloating<T>::value || std::is_signed<T>::value};
  }
  template <class T> static constexpr bool isSimpleType() { return core::IsNumber<T>::value; }
  std::size_t size, align;
  bool isSimple, isFloat, isIntegral, isSigned;

private:
  template <class T> struct IsFloating : std::integral_constant<bool, std::is_floating_point<T>::value || core::IsHalf<T>::value> {};
};

} // namespace poplar

#endif
