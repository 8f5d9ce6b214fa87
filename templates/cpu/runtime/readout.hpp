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
  template <class Step> StepResponse(int steps, std::size_t stride, std::size_t count, const Step &step) {
    Array<float> current(stride), output(stride);
    std::vector<Array<float>> kept(count);
    std::vector<float *> states;
    for (Array<float> &state : kept) {
      state.resize(stride);
      states.push_back(state.data());
    }
    for (std::size_t i = 0; i < stride; ++i)
      current[i] = 1.0f;
    double sum = 0, all = 0;
    for (int t = 0; t < steps; ++t) {
      step(current.data(), states.data(), output.data());
      current.clear();
      all += sum += static_cast<double>(output[0]);
      sums.push_back(static_cast<float>(sum));
    }
    total = static_cast<float>(all);
  }
};

/// Sets counts to the sum of each source neuron's values, each multiplied by the response from its arrival to the end.
void count(const Worker &w, const Source &source, int delay, const StepResponse &response, Rows &counts);

/// Multiplies a worker's rows of a step.
void scale(const Worker &w, Rows &rows, int t, float factor);

/// to[then] += factor * from[0].
void add_scaled(const Worker &w, const Rows &from, float factor, Rows &to, int then);

} // namespace snnc

#endif
