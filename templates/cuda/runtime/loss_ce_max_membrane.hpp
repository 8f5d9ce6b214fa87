// The loss and the adjoint of its record: cross entropy of the maximum over time, whose first step receives the adjoint.
#ifndef SNNC_LOSS_HPP
#define SNNC_LOSS_HPP

#include "cross_entropy.hpp"

namespace snnc {

inline int adjoint_slots(int steps) { return steps; }
/// A warp processes a sample.
inline int loss_rows(int, int batch) { return batch; }

/// The score of a class over all steps; it is computed beforehand, for all samples and classes at once.
constexpr bool SCORED = true;
DEVICE double score_of(const LossTask &task, int b, int c) {
  float best = task.record[task.place(0, b, c)];
  for_each_step(task, b, c, [&](float number) { best = fmaxf(best, number); });
  return static_cast<double>(best);
}

DEVICE void find_loss(const LossTask &task, int b, int lane) {
  double *scores = task.scores + task.place(0, b, 0);
  const double loss = cross_entropy(scores, task.classes, task.labels[b], 1.0 / task.averaged, lane);
  for (int c = lane; c < task.classes; c += LANES) {
    int chosen = 0;
    for (int t = 0; t < task.steps; ++t) {
      task.adjoint[task.place(t, b, c)] = 0;
      if (task.record[task.place(t, b, c)] > task.record[task.place(chosen, b, c)])
        chosen = t;
    }
    task.adjoint[task.place(chosen, b, c)] = static_cast<float>(scores[c]);
  }
  if (lane == 0)
    task.losses[b] = static_cast<float>(loss / task.averaged);
}

} // namespace snnc

#endif
