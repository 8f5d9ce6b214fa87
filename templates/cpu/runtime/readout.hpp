// A collapsed linear readout, whose mean is all that the loss reads: spikes are counted with a weight per step.
#ifndef SNNC_READOUT_HPP
#define SNNC_READOUT_HPP

#include "values.hpp"

namespace snnc {

/// The response of a linear population to a current of 1, summed over time.
struct StepResponse {
  /// sums[k]: the sum of the outputs in k + 1 steps, starting with the step of the current.
  std::vector<float> sums;
  /// The sum of `sums`: the response to a current of 1 at every step.
  float total = 0;

  StepResponse() = default;
  /// step(current, states, output) runs a step of one row of `stride` neurons in place; the population has `count` states.
  template <class Step>
  StepResponse(int steps, std::size_t stride, std::size_t count, const Step &step) : StepResponse(steps, stride, count, call<Step>, &step) {}

private:
  using Call = void (*)(const void *step, const float *current, float *const *states, float *output);
  template <class Step> static void call(const void *step, const float *current, float *const *states, float *output) {
    (*static_cast<const Step *>(step))(current, states, output);
  }
  StepResponse(int steps, std::size_t stride, std::size_t count, Call call, const void *step);
};

extern template class PerWorker<StepResponse>;

/// Sets counts to the sum of each source neuron's values, each multiplied by the response from its arrival to the end.
void count(const Worker &w, const Source &source, int delay, const StepResponse &response, Rows &counts);

/// Multiplies a worker's rows of a step.
void scale(const Worker &w, Rows &rows, int t, float factor);

/// to[then] += factor * from[0].
void add_scaled(const Worker &w, const Rows &from, float factor, Rows &to, int then);

} // namespace snnc

#endif
