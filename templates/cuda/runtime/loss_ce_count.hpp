// The loss and the adjoint of its record: cross entropy of the sum over time.
#ifndef SNNC_LOSS_HPP
#define SNNC_LOSS_HPP

#include "cross_entropy.hpp"

namespace snnc {

/// The adjoint is the same at every step, so one row is stored. A warp processes a sample.
inline int adjoint_slots(int) { return 1; }
inline int loss_rows(int, int batch) { return batch; }

/// The score of a class over all steps; it is computed beforehand, for all samples and classes at once.
constexpr bool SCORED = true;
DEVICE double score_of(const LossTask &task, int b, int c) { return sum_over_steps(task, b, c); }

DEVICE void find_loss(const LossTask &task, int b, int lane) {
  double *scores = task.scores + task.place(0, b, 0);
  const double loss = cross_entropy(scores, task.classes, task.labels[b], 1.0 / task.averaged, lane);
  for (int c = lane; c < task.classes; c += LANES)
    task.adjoint[task.place(0, b, c)] = static_cast<float>(scores[c]);
  if (lane == 0)
    task.losses[b] = static_cast<float>(loss / task.averaged);
}

} // namespace snnc

#endif
