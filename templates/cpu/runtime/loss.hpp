// The loss of one sample: loss.cpp defines the function of the network's loss.
#ifndef SNNC_LOSS_HPP
#define SNNC_LOSS_HPP

#include "values.hpp"

namespace snnc {

/// Returns the loss of sample `b`, divided by the number of samples `batch`, and writes the adjoint of its record. Losses whose adjoint is
/// the same at every step write only one row.
float loss_of_sample(const Rows &record, Rows &adjoint, int steps, int batch, int b, std::size_t label);
/// As above, for targets other than one class per sample; `targets` are those of the sample.
float loss_of_sample(const Rows &record, Rows &adjoint, int steps, int batch, int b, const float *targets);

} // namespace snnc

#endif
