// Float16 states, stored as float32: every value assigned to them is rounded.
#ifndef SNNC_HALF_STATES_HPP
#define SNNC_HALF_STATES_HPP

#include "float16.hpp"

namespace snnc {

/// Rounds to the nearest float16 value, ties to even; overflow gives infinity.
inline float rounded_to_half(float value) { return float_of(half_of(value)); }

} // namespace snnc

#endif
