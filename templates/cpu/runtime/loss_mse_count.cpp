// The loss of one sample and the adjoint of its record: squared error of the spike counts.
#include "loss.hpp"

#include "settings.hpp"

namespace snnc {

float loss_of_sample(const Rows &record, Rows &adjoint, int steps, int batch, int b, std::size_t label) {
  const double share = 1.0 / batch / static_cast<double>(record.size) / steps;
  const double correct = static_cast<int>(steps * CORRECT), incorrect = static_cast<int>(steps * INCORRECT);
  double loss = 0;
  for (std::size_t c = 0; c < record.size; ++c) {
    double error = c == label ? -correct : -incorrect;
    for (int t = 0; t < steps; ++t)
      error += static_cast<double>(record.row(t, b)[c]);
    loss += error * error;
    adjoint.row(0, b)[c] = static_cast<float>(2 * share * error);
  }
  return static_cast<float>(share * loss);
}

} // namespace snnc
