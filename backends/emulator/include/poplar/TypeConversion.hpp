// Host values as device bytes, and the inverse.
#ifndef SNNC_POPLAR_TYPE_CONVERSION_HPP
#define SNNC_POPLAR_TYPE_CONVERSION_HPP

#include <cstdint>

#include <poplar/ArrayRef.hpp>
#include <poplar/Quarter.hpp>
#include <poplar/Type.hpp>

namespace poplar {

namespace detail {
/// Converts one element; throws type_error for a type whose values are not numbers.
void storeElement(const Type &type, const QuarterMetadata &metadata, double value, bool nanOnOverflow, char *out);
double loadElement(const Type &type, const QuarterMetadata &metadata, const char *in);
} // namespace detail

template <class T>
void convertToDeviceType(const Type &deviceType, const QuarterMetadata &metadata, const ArrayRef<T> &src, void *dst, bool nanOnOverflow = false) {
  for (std::size_t i = 0; i < src.size(); ++i)
    detail::storeElement(deviceType, metadata, double(src[i]), nanOnOverflow, static_cast<char *>(dst) + i * deviceType.size());
}
template <class T> void convertToDeviceType(const Type &deviceType, const ArrayRef<T> &src, void *dst) {
  convertToDeviceType(deviceType, QuarterMetadata(), src, dst);
}
/// `dst` refers to the caller's memory, which is written.
template <class T> void convertFromDeviceType(const Type &deviceType, const QuarterMetadata &metadata, const void *src, const ArrayRef<T> &dst) {
  for (std::size_t i = 0; i < dst.size(); ++i)
    const_cast<T &>(dst[i]) = T(detail::loadElement(deviceType, metadata, static_cast<const char *>(src) + i * deviceType.size()));
}
template <class T> void convertFromDeviceType(const Type &deviceType, const void *src, const ArrayRef<T> &dst) {
  convertFromDeviceType(deviceType, QuarterMetadata(), src, dst);
}

} // namespace poplar

#endif
