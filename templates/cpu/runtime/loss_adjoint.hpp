// No loss: the caller sets the adjoint of the record at every step.
#ifndef SNNC_LOSS_HPP
#define SNNC_LOSS_HPP

#include "values.hpp"

namespace snnc {

inline float loss_of_sample(const Rows &, Rows &, int, int, int, std::size_t) { return 0.0f; }

} // namespace snnc

#endif
