// Element types.
#ifndef SNNC_POPLAR_TYPE_HPP
#define SNNC_POPLAR_TYPE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>

#include <poplar/IeeeHalf.hpp>
#include <poplar/core/Language.hpp>

namespace poplar {

/// The type of an element; compare it with the constants below.
class Type {
public:
  constexpr explicit Type(std::uint8_t id = 0) : id_(id) {}
  constexpr std::uint8_t id() const { return id_; }
  /// Bytes of one element.
  std::size_t size() const;
  std::string toString() const;
  constexpr bool isFloatingPoint() const { return id_ >= 11 && id_ <= 13; }
  /// char, short, int and their variants; not bool.
  constexpr bool isIntegral() const { return id_ >= 2 && id_ <= 10; }
  constexpr bool isSigned() const { return isFloatingPoint() || id_ == 2 || id_ == 4 || id_ == 5 || id_ == 7 || id_ == 9; }
  /// Whether a tensor of the type has metadata that specify how its bits are interpreted.
  constexpr bool requiresMetadata() const { return id_ == 13; }
  constexpr std::size_t hash() const { return id_; }
  constexpr bool operator==(Type other) const { return id_ == other.id_; }
  constexpr bool operator!=(Type other) const { return id_ != other.id_; }
  constexpr bool operator<(Type other) const { return id_ < other.id_; }

private:
  std::uint8_t id_;
};

std::ostream &operator<<(std::ostream &os, Type type);

// Programs may bind these to `Type &`, as with Poplar; the emulator's own sources use their values in constant expressions.
#if defined(SNNC_EMULATOR_SOURCES)
#define SNNC_TYPE inline constexpr Type
#else
#define SNNC_TYPE SNNC_HEADER_VARIABLE Type
#endif
SNNC_TYPE BOOL{1};
SNNC_TYPE CHAR{2};
SNNC_TYPE UNSIGNED_CHAR{3};
SNNC_TYPE SIGNED_CHAR{4};
SNNC_TYPE SHORT{5};
SNNC_TYPE UNSIGNED_SHORT{6};
SNNC_TYPE INT{7};
SNNC_TYPE UNSIGNED_INT{8};
SNNC_TYPE LONGLONG{9};
SNNC_TYPE UNSIGNED_LONGLONG{10};
SNNC_TYPE HALF{11};
SNNC_TYPE FLOAT{12};
SNNC_TYPE QUARTER{13};
SNNC_TYPE QUARTER_METADATA{14};
/// long has 32 bits on an IPU.
SNNC_TYPE LONG{7};
SNNC_TYPE UNSIGNED_LONG{8};
/// Other names of the same types.
SNNC_TYPE SIGNED_SHORT{5};
SNNC_TYPE SIGNED_INT{7};
SNNC_TYPE SIGNED{7};
SNNC_TYPE UNSIGNED{8};
#undef SNNC_TYPE

namespace core {
/// Other types have no `value`, for which programs may ask.
template <class T, bool = IsNumber<T>::value> struct DeviceType {};
template <class T> struct DeviceType<T, true> {
  static constexpr Type find() {
    return Type(IsHalf<T>::value                   ? 11
                : std::is_floating_point<T>::value ? 12
                : std::is_same<T, bool>::value     ? 1
                : std::is_same<T, char>::value     ? 2
                : sizeof(T) == 1                   ? (std::is_signed<T>::value ? 4 : 3)
                : sizeof(T) == 2                   ? (std::is_signed<T>::value ? 5 : 6)
                : sizeof(T) == 4                   ? (std::is_signed<T>::value ? 7 : 8)
                                                   : (std::is_signed<T>::value ? 9 : 10));
  }
  const Type value = find();
};
} // namespace core

/// The device type of a host type.
template <class T> struct equivalent_device_type : core::DeviceType<T> {};
template <class T> constexpr Type equivalentDeviceType() { return equivalent_device_type<T>::find(); }

} // namespace poplar

#endif
