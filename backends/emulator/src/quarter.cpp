// Eight-bit floating point (1.4.3 and 1.5.2; Noune, Jones, Justus, Masters, Luschi 2022).
#include <poplar/Quarter.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace poplar {

namespace {

struct Layout8 {
  int mantissaBits, bias;
  double largest;
};
Layout8 layoutOf(QuarterMetadata::Format format) {
  return format == QuarterMetadata::Format::F152 ? Layout8{2, 16, 57344} : Layout8{3, 8, 240};
}
constexpr std::uint8_t notANumber = 0x80;

} // namespace

QuarterMetadata::QuarterMetadata(Format format, int scale) : format_(format), scale_(std::int8_t(scale)) {
  if (scale < -31 || scale > 31)
    throw poplar_error("QuarterMetadata: scale " + std::to_string(scale) + " is outside [-31, 31]");
}

std::uint8_t toQuarter(double value, const QuarterMetadata &metadata, bool nanOnOverflow) {
  const Layout8 layout = layoutOf(metadata.getFormat());
  if (std::isnan(value))
    return notANumber;
  const double size = std::ldexp(std::fabs(value), -metadata.getScale());
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const int one = 1 << layout.mantissaBits;
  int exponent = 0;
  std::frexp(std::min(size, 2 * layout.largest), &exponent);
  exponent = std::max(exponent - 1, 1 - layout.bias);
  const double quantum = std::ldexp(1, exponent - layout.mantissaBits);
  const double steps = std::nearbyint(std::min(size, 2 * layout.largest) / quantum);
  if (steps * quantum > layout.largest) {
    if (nanOnOverflow)
      return notANumber;
    return toQuarter(std::copysign(std::ldexp(layout.largest, metadata.getScale()), value), metadata);
  }
  if (steps == 0)
    return 0;
  // Steps of the subnormal range, and those that round up into the next binade, need no special case, because the fields form one number.
  return std::uint8_t(sign | (steps < one ? int(steps) : (exponent + layout.bias) * one + int(steps) - one));
}

double fromQuarter(std::uint8_t bits, const QuarterMetadata &metadata) {
  if (bits == notANumber)
    return std::numeric_limits<double>::quiet_NaN();
  const Layout8 layout = layoutOf(metadata.getFormat());
  const int one = 1 << layout.mantissaBits, field = (bits & 0x7f) / one, steps = (bits & 0x7f) % one + (field ? one : 0);
  const double size = std::ldexp(steps, std::max(field, 1) - layout.bias - layout.mantissaBits + metadata.getScale());
  return bits & 0x80 ? -size : size;
}

} // namespace poplar
