// The loss of one sample and the adjoint of its record: cross entropy of the sum over time.
#include "loss.hpp"

#include "cross_entropy.hpp"

#include <vector>

namespace snnc {

float loss_of_sample(const Rows &record, Rows &adjoint, int steps, int batch, int b, std::size_t label) {
  std::vector<double> scores(record.size);
  for (int t = 0; t < steps; ++t)
    for (std::size_t c = 0; c < record.size; ++c)
      scores[c] += static_cast<double>(record.row(t, b)[c]);
  const double loss = cross_entropy(scores.data(), record.size, label, 1.0 / batch);
  for (std::size_t c = 0; c < record.size; ++c)
    adjoint.row(0, b)[c] = static_cast<float>(scores[c]);
  return static_cast<float>(loss / batch);
}

} // namespace snnc
