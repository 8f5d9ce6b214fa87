// Softmax cross entropy of one row of scores, by a warp.
#ifndef SNNC_CROSS_ENTROPY_HPP
#define SNNC_CROSS_ENTROPY_HPP

#include "device.hpp"

namespace snnc {

/// A record and its adjoint, [step][sample][class]; memory for scores, [row][class]; the number of samples over which a loss is averaged.
struct LossTask {
  const float *record;
  float *adjoint;
  double *scores;
  float *losses;
  const std::int32_t *labels;
  int steps, batch, averaged, classes;
  /// Used instead of labels if targets are not one class per sample.
  const float *targets;

  DEVICE std::size_t place(int t, int b, int c) const {
    return (static_cast<std::size_t>(t) * static_cast<std::size_t>(batch) + static_cast<std::size_t>(b)) *
               static_cast<std::size_t>(classes) +
           static_cast<std::size_t>(c);
  }
};

/// Calls act(value) for the values of a class at all steps, in order; several loads are in flight at a time.
template <class Act> DEVICE void for_each_step(const LossTask &task, int b, int c, const Act &act) {
  constexpr int AHEAD = 8;
  const float *first = task.record + task.place(0, b, c);
  const std::size_t step = task.place(1, 0, 0);
  int t = 0;
  for (; t + AHEAD <= task.steps; t += AHEAD) {
    float found[AHEAD];
    UNROLL(8)
    for (int i = 0; i < AHEAD; ++i)
      found[i] = first[static_cast<std::size_t>(t + i) * step];
    UNROLL(8)
    for (int i = 0; i < AHEAD; ++i)
      act(found[i]);
  }
  for (; t < task.steps; ++t)
    act(first[static_cast<std::size_t>(t) * step]);
}

/// Returns the sum of a class's values over all steps.
DEVICE double sum_over_steps(const LossTask &task, int b, int c) {
  double sum = 0;
  for_each_step(task, b, c, [&](float number) { sum += static_cast<double>(number); });
  return sum;
}

/// Returns the cross entropy; replaces `scores`, of which each lane has every LANES-th, by share * (softmax - one-hot label).
DEVICE double cross_entropy(double *scores, int classes, int label, double share, int lane) {
  double highest = -1e300, sum = 0, correct = 0;
  for (int c = lane; c < classes; c += LANES)
    highest = scores[c] > highest ? scores[c] : highest;
  highest = warp_highest(highest);
  for (int c = lane; c < classes; c += LANES) {
    sum += exp(scores[c] - highest);
    correct += c == label ? scores[c] : 0.0;
  }
  sum = warp_sum(sum);
  correct = warp_sum(correct);
  for (int c = lane; c < classes; c += LANES)
    scores[c] = share * (exp(scores[c] - highest) / sum - (c == label ? 1.0 : 0.0));
  return log(sum) - (correct - highest);
}

} // namespace snnc

#endif
