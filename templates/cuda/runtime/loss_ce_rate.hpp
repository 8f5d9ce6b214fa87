// The loss and the adjoint of its record: cross entropy of every step, averaged.
#ifndef SNNC_LOSS_HPP
#define SNNC_LOSS_HPP

#include "cross_entropy.hpp"

namespace snnc {

inline int adjoint_slots(int steps) { return steps; }
/// A warp processes a step of a sample.
inline int loss_rows(int steps, int batch) { return steps * batch; }

/// Scores over all steps are not needed.
constexpr bool SCORED = false;
DEVICE double score_of(const LossTask &, int, int) { return 0; }

DEVICE void find_loss(const LossTask &task, int row, int lane) {
  const int t = row / task.batch, b = row % task.batch;
  double *scores = task.scores + task.place(t, b, 0);
  for (int c = lane; c < task.classes; c += LANES)
    scores[c] = static_cast<double>(task.record[task.place(t, b, c)]);
  const double loss = cross_entropy(scores, task.classes, task.labels[b], 1.0 / task.steps / task.averaged, lane);
  for (int c = lane; c < task.classes; c += LANES)
    task.adjoint[task.place(t, b, c)] = static_cast<float>(scores[c]);
  if (lane == 0)
    task.losses[row] = static_cast<float>(loss / task.steps / task.averaged);
}

} // namespace snnc

#endif
