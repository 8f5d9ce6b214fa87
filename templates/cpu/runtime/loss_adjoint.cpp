// No loss: the caller sets the adjoint of the record at every step.
#include "loss.hpp"

namespace snnc {

float loss_of_sample(const Rows &, Rows &, int, int, int, std::size_t) { return 0.0f; }

} // namespace snnc
