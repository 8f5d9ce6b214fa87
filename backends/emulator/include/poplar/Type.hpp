// Element types.
#ifndef SNNC_POPLAR_TYPE_HPP
#define SNNC_POPLAR_TYPE_HPP

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>

#include <poplar/HalfFloat.hpp>

namespace poplar {

/// The type of an element; compare with the constants below.
class Type {
public:
  constexpr explicit Type(std::uint8_t id = 0) : id_(id) {}
  constexpr std::uint8_t id() const { return id_; }
  /// Bytes of one element.
  std::size_t size() const;
  std::string toString() const;
  constexpr bool isFloatingPoint() const { return id_ >= 11 && id_ <= 13; }
  constexpr bool operator==(Type other) const { return id_ == other.id_; }
  constexpr bool operator!=(Type other) const { return id_ != other.id_; }
  constexpr bool operator<(Type other) const { return id_ < other.id_; }

private:
  std::uint8_t id_;
};

std::ostream &operator<<(std::ostream &os, Type type);

inline constexpr Type BOOL{1};
inline constexpr Type CHAR{2};
inline constexpr Type UNSIGNED_CHAR{3};
inline constexpr Type SIGNED_CHAR{4};
inline constexpr Type SHORT{5};
inline constexpr Type UNSIGNED_SHORT{6};
inline constexpr Type INT{7};
inline constexpr Type UNSIGNED_INT{8};
inline constexpr Type LONGLONG{9};
inline constexpr Type UNSIGNED_LONGLONG{10};
inline constexpr Type HALF{11};
inline constexpr Type FLOAT{12};
inline constexpr Type QUARTER{13};

/// The device type of a host type.
template <class T> struct equivalent_device_type {
  static constexpr bool known = std::is_arithmetic_v<T>;
  static_assert(known, "no device type for this host type");
  static constexpr Type find() {
    if (std::is_floating_point_v<T>)
      return FLOAT;
    if (std::is_same_v<T, bool>)
      return BOOL;
    if (std::is_same_v<T, char>)
      return CHAR;
    const bool isSigned = std::is_signed_v<T>;
    switch (sizeof(T)) {
    case 1:
      return isSigned ? SIGNED_CHAR : UNSIGNED_CHAR;
    case 2:
      return isSigned ? SHORT : UNSIGNED_SHORT;
    case 4:
      return isSigned ? INT : UNSIGNED_INT;
    default:
      return isSigned ? LONGLONG : UNSIGNED_LONGLONG;
    }
  }
  const Type value = find();
};
template <> struct equivalent_device_type<half> {
  static constexpr Type find() { return HALF; }
  const Type value = HALF;
};
template <class T> constexpr Type equivalentDeviceType() { return equivalent_device_type<T>::find(); }

} // namespace poplar

#endif
