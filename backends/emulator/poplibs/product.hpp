// A block of a matrix product in the host's vector registers.
#pragma once

#include <cstddef>

namespace poplibs {

/// out [m, n] = x [m, k] times y [k, n]. Every element is summed over k in order, with each product and sum rounded separately.
void multiplyBlock(const float *x, const float *y, float *out, std::size_t m, std::size_t k, std::size_t n);

} // namespace poplibs
