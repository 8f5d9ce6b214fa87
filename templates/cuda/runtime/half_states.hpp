// Float16 states, stored as float32: every value assigned to them is rounded.
#ifndef SNNC_HALF_STATES_HPP
#define SNNC_HALF_STATES_HPP

#include "half.hpp"

namespace snnc {

/// Rounds to the nearest float16 value, ties to even; overflow gives infinity.
DEVICE float rounded_to_half(float value) { return Float16::number(Float16::of(value)); }

} // namespace snnc

#endif
