// Format and scale of the eight bits of a quarter on the host. This header declares no global `quarter`.
#ifndef SNNC_POPLAR_QUARTER_HPP
#define SNNC_POPLAR_QUARTER_HPP

#include <cstdint>

namespace poplar {

/// Format of a quarter and the power of two by which its values are multiplied.
class QuarterMetadata {
public:
  /// Sign, exponent and mantissa of 1, 4, 3 bits (bias 8, at most 240) or 1, 5, 2 bits (bias 16, at most 57344); 0x80 is NaN.
  enum class Format { F143, F152 };

  QuarterMetadata() = default;
  /// Throws poplar_error if `scale` is not in [-31, 31].
  QuarterMetadata(Format format, int scale);
  /// The inverse of getBinary.
  static QuarterMetadata fromBinary(std::uint8_t binary) {
    return QuarterMetadata(binary & 0x80 ? Format::F152 : Format::F143, int(std::int8_t(std::uint8_t(binary << 2))) / 4);
  }
  Format getFormat() const { return format_; }
  std::int8_t getScale() const { return scale_; }
  /// The format in the highest bit, the scale in the lowest six.
  std::uint8_t getBinary() const { return std::uint8_t((format_ == Format::F152 ? 0x80 : 0) | (scale_ & 0x3f)); }
  bool operator==(const QuarterMetadata &other) const { return format_ == other.format_ && scale_ == other.scale_; }
  bool operator!=(const QuarterMetadata &other) const { return !(*this == other); }

private:
  Format format_ = Format::F143;
  std::int8_t scale_ = 0;
};

/// The nearest quarter (ties to even). Values that are too large give the largest one, or 0x80 if `nanOnOverflow` is set.
std::uint8_t toQuarter(double value, const QuarterMetadata &metadata, bool nanOnOverflow = false);
double fromQuarter(std::uint8_t bits, const QuarterMetadata &metadata);

} // namespace poplar

#endif
