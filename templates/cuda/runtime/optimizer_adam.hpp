// Adam, as torch.optim.Adam: epsilon stands outside of the root.
#ifndef SNNC_OPTIMIZER_HPP
#define SNNC_OPTIMIZER_HPP

#include "learned.hpp"
#include "settings.hpp"

namespace snnc {

/// What one update needs beside the gradients.
struct Update {
  float rate, scale;
  Update(float learning_rate, int number)
      : rate(static_cast<float>(static_cast<double>(learning_rate) / (1 - std::pow(BETA1, number)))),
        scale(static_cast<float>(std::sqrt(1 - std::pow(BETA2, number)))) {}
};

DEVICE void change(const Learned &of, int i, float gradient, const Update &update) {
  constexpr float KEEP1 = static_cast<float>(BETA1), KEEP2 = static_cast<float>(BETA2);
  constexpr float TAKE1 = static_cast<float>(1 - BETA1), TAKE2 = static_cast<float>(1 - BETA2);
  const float moment1 = KEEP1 * of.moment1[i] + TAKE1 * gradient, moment2 = KEEP2 * of.moment2[i] + TAKE2 * gradient * gradient;
  of.moment1[i] = moment1;
  of.moment2[i] = moment2;
  of.value[i] -= update.rate * moment1 / (sqrtf(moment2) / update.scale + EPSILON);
}

} // namespace snnc

#endif
