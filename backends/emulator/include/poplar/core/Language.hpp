// Replacements for features of newer standards than C++11, with which many programs are still compiled.
#ifndef SNNC_POPLAR_CORE_LANGUAGE_HPP
#define SNNC_POPLAR_CORE_LANGUAGE_HPP

#include <type_traits>

/// A variable that a header defines, one for the whole program.
#if __cplusplus >= 201703L
#define SNNC_HEADER_VARIABLE inline
#else
#define SNNC_HEADER_VARIABLE __attribute__((weak))
#endif

namespace poplar {

class IeeeHalf;

namespace core {

template <bool Condition, class T = void> using EnableIf = typename std::enable_if<Condition, T>::type;

/// Whether T is a half-precision value, of the host or of a codelet.
template <class T> struct IsHalf : std::integral_constant<bool, std::is_same<T, IeeeHalf>::value || std::is_same<T, _Float16>::value> {};
/// Whether T is a number that can be the value of an element.
template <class T> struct IsNumber : std::integral_constant<bool, std::is_arithmetic<T>::value || IsHalf<T>::value> {};

} // namespace core
} // namespace poplar

#endif
