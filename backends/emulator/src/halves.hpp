// Converts whole blocks of halves at once, with the CPU's own instructions if it has them.
#pragma once

#include <cstddef>

#include <poplar/HalfFloat.hpp>

namespace poplar::core {

/// Whether this processor converts halves itself (F16C on x86); otherwise the compiler's conversions are used, with the same results.
bool convertsHalves();

/// Halves as floats; `from` need not be aligned.
void widen(const void *from, float *to, std::size_t n);
/// Floats as halves, rounded to the nearest, ties to even; `to` need not be aligned.
void narrow(const float *from, void *to, std::size_t n);
/// Rounds each float to the nearest value that a half can represent.
void roundToHalf(float *values, std::size_t n);

} // namespace poplar::core
