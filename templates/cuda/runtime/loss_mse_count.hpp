// The loss and the adjoint of its record: squared error of the spike counts.
#ifndef SNNC_LOSS_HPP
#define SNNC_LOSS_HPP

#include "cross_entropy.hpp"
#include "settings.hpp"

namespace snnc {

/// The adjoint is the same at every step, so one row is stored. A warp processes a sample.
inline int adjoint_slots(int) { return 1; }
inline int loss_rows(int, int batch) { return batch; }

/// The score of a class over all steps; it is computed beforehand, for all samples and classes at once.
constexpr bool SCORED = true;
DEVICE double score_of(const LossTask &task, int b, int c) { return sum_over_steps(task, b, c); }

DEVICE void find_loss(const LossTask &task, int b, int lane) {
  const double share = 1.0 / task.averaged / task.classes / task.steps;
  const double correct = static_cast<int>(task.steps * CORRECT), incorrect = static_cast<int>(task.steps * INCORRECT);
  double loss = 0;
  for (int c = lane; c < task.classes; c += LANES) {
    const double error = task.scores[task.place(0, b, c)] - (c == task.labels[b] ? correct : incorrect);
    loss += error * error;
    task.adjoint[task.place(0, b, c)] = static_cast<float>(2 * share * error);
  }
  loss = warp_sum(loss);
  if (lane == 0)
    task.losses[b] = static_cast<float>(share * loss);
}

} // namespace snnc

#endif
