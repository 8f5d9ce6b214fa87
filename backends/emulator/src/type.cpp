#include <poplar/Target.hpp>
#include <poplar/Type.hpp>
#include <poplar/TypeConversion.hpp>
#include <poplar/exceptions.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

namespace poplar {

namespace {
struct TypeFacts {
  const char *name;
  std::size_t bytes;
};
constexpr TypeFacts facts[] = {{"none", 0},  {"bool", 1},           {"char", 1}, {"unsigned char", 1}, {"signed char", 1},
                               {"short", 2}, {"unsigned short", 2}, {"int", 4},  {"unsigned int", 4},  {"long long", 8},
                               {"unsigned long long", 8}, {"half", 2}, {"float", 4}, {"quarter", 1},   {"quarter_metadata", 1}};
} // namespace

std::size_t Type::size() const { return facts[id_].bytes; }
std::string Type::toString() const { return facts[id_].name; }
std::ostream &operator<<(std::ostream &os, Type type) { return os << type.toString(); }

void detail::storeElement(const Type &type, const QuarterMetadata &metadata, double value, bool nanOnOverflow, char *out) {
  const auto put = [&](auto converted) { std::memcpy(out, &converted, sizeof converted); };
  if (type == FLOAT)
    put(float(value));
  else if (type == HALF)
    put(IeeeHalf(value).bit16());
  else if (type == QUARTER)
    put(toQuarter(value, metadata, nanOnOverflow));
  else if (type == BOOL)
    put(std::uint8_t(value != 0));
  else if (type.isIntegral() && type.isSigned()) {
    const std::int64_t integer = std::int64_t(value);
    std::memcpy(out, &integer, type.size()); // little endian
  } else if (type.isIntegral()) {
    const std::uint64_t integer = value < 0 ? std::uint64_t(std::int64_t(value)) : std::uint64_t(value);
    std::memcpy(out, &integer, type.size());
  } else
    throw type_error("a value of the host cannot become an element of type " + type.toString());
}

void copyDoubleToDeviceHalf(const Target &, const double *src, void *dst, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i)
    detail::storeElement(HALF, {}, src[i], false, static_cast<char *>(dst) + 2 * i);
}

void copyDeviceHalfToDouble(const Target &, const void *src, double *dst, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i)
    dst[i] = detail::loadElement(HALF, {}, static_cast<const char *>(src) + 2 * i);
}

double detail::loadElement(const Type &type, const QuarterMetadata &metadata, const char *in) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, in, type.size()); // little endian
  if (type == FLOAT) {
    float value;
    std::memcpy(&value, in, sizeof value);
    return double(value);
  }
  if (type == HALF)
    return double(IeeeHalf::fromBits(std::uint16_t(bits)));
  if (type == QUARTER)
    return fromQuarter(std::uint8_t(bits), metadata);
  if (type == BOOL)
    return bits != 0;
  if (!type.isIntegral())
    throw type_error("an element of type " + type.toString() + " is no value of the host");
  const int unused = 64 - 8 * int(type.size());
  return type.isSigned() ? double(std::int64_t(bits << unused) >> unused) : double(bits);
}

} // namespace poplar
