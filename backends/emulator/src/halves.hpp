// Whole blocks of halves converted at once, by the processor's own instructions where it has them.
#pragma once

#include <cstddef>

#include <poplar/HalfFloat.hpp>

namespace poplar::core {

/// Whether this processor converts halves itself (F16C on x86); elsewhere the compiler's conversions are used. Results are the same.
bool convertsHalves();

/// Halves as floats; `from` need not be aligned.
void widen(const void *from, float *to, std::size_t n);
/// Floats as halves, rounded to the nearest, ties to even; `to` need not be aligned.
void narrow(const float *from, void *to, std::size_t n);
/// Each float becomes the nearest that a half can hold.
void roundToHalf(float *values, std::size_t n);

} // namespace poplar::core
