// Half-precision values on the host. This header declares no global `half`, because host code may have its own (Eigen's, for example).
#ifndef SNNC_POPLAR_IEEE_HALF_HPP
#define SNNC_POPLAR_IEEE_HALF_HPP

#include <cstdint>
#include <cstring>

#include <poplar/core/Language.hpp>

namespace poplar {

/// IEEE binary16, converted from and to float; rounds to the nearest even value.
class IeeeHalf {
public:
  IeeeHalf() = default;
  explicit IeeeHalf(float value) : value_(static_cast<_Float16>(value)) {}
  explicit IeeeHalf(double value) : value_(static_cast<_Float16>(value)) {}
  explicit IeeeHalf(int value) : value_(static_cast<_Float16>(value)) {}
  static IeeeHalf fromBits(std::uint16_t bits) {
    IeeeHalf half;
    std::memcpy(&half.value_, &bits, sizeof bits);
    return half;
  }
  std::uint16_t bit16() const {
    std::uint16_t bits;
    std::memcpy(&bits, &value_, sizeof bits);
    return bits;
  }
  operator float() const { return static_cast<float>(value_); }
  friend bool operator==(IeeeHalf a, IeeeHalf b) { return a.value_ == b.value_; }
  friend bool operator!=(IeeeHalf a, IeeeHalf b) { return a.value_ != b.value_; }

private:
  _Float16 value_ = 0;
};

} // namespace poplar

#endif
