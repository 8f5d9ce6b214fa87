// Stochastic gradient descent, as torch.optim.SGD.
#ifndef SNNC_OPTIMIZER_HPP
#define SNNC_OPTIMIZER_HPP

#include "learned.hpp"
#include "settings.hpp"

namespace snnc {

/// What one update needs beside the gradients.
struct Update {
  float rate;
  Update(float learning_rate, int) : rate(learning_rate) {}
};

DEVICE void change(const Learned &of, int i, float gradient, const Update &update) {
  if (MOMENTS > 0)
    gradient = of.moment1[i] = MOMENTUM * of.moment1[i] + gradient;
  of.value[i] -= update.rate * gradient;
}

} // namespace snnc

#endif
