// Adam, as torch.optim.Adam: epsilon stands outside of the root.
#ifndef SNNC_OPTIMIZER_HPP
#define SNNC_OPTIMIZER_HPP

#include "parameters.hpp"
#include "settings.hpp"

#include <cmath>

namespace snnc {

/// Changes a part of the numbers; gradients of all threads are summed in their order.
inline void change(Parameter &parameter, std::pair<std::size_t, std::size_t> part, float learning_rate, int update) {
  constexpr float KEEP1 = static_cast<float>(BETA1), KEEP2 = static_cast<float>(BETA2);
  constexpr float TAKE1 = static_cast<float>(1 - BETA1), TAKE2 = static_cast<float>(1 - BETA2);
  const float rate = static_cast<float>(static_cast<double>(learning_rate) / (1 - std::pow(BETA1, update)));
  const float scale = static_cast<float>(1 / std::sqrt(1 - std::pow(BETA2, update)));
  float *__restrict__ value = parameter.value.data(), *__restrict__ moment1 = parameter.moment1.data(),
                      *__restrict__ moment2 = parameter.moment2.data();
  float room[CHANGED];
  for (std::size_t first = part.first; first < part.second; first += CHANGED) {
    const std::size_t count = std::min(CHANGED, padded(part.second - first));
    const float *gradient = parameter.gradient_sum(first, count, room);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = first + k;
      moment1[i] = KEEP1 * moment1[i] + TAKE1 * gradient[k];
      moment2[i] = KEEP2 * moment2[i] + TAKE2 * gradient[k] * gradient[k];
      value[i] -= rate * moment1[i] / (std::sqrt(moment2[i]) * scale + EPSILON);
    }
  }
}

} // namespace snnc

#endif
