// Stochastic gradient descent, as torch.optim.SGD.
#ifndef SNNC_OPTIMIZER_HPP
#define SNNC_OPTIMIZER_HPP

#include "parameters.hpp"
#include "settings.hpp"

namespace snnc {

/// Changes a part of the numbers; gradients of all threads are summed in their order.
inline void change(Parameter &parameter, std::pair<std::size_t, std::size_t> part, float learning_rate, int) {
  float room[CHANGED];
  for (std::size_t first = part.first; first < part.second; first += CHANGED) {
    const std::size_t count = std::min(CHANGED, padded(part.second - first));
    const float *gradient = parameter.gradient_sum(first, count, room);
    for (std::size_t k = 0; k < count; ++k) {
      float change = gradient[k];
      if (MOMENTS > 0)
        change = parameter.moment1[first + k] = MOMENTUM * parameter.moment1[first + k] + change;
      parameter.value[first + k] -= learning_rate * change;
    }
  }
}

} // namespace snnc

#endif
