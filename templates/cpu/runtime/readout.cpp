#include "readout.hpp"

#include "lists.hpp"

namespace snnc {

template class PerWorker<StepResponse>;

StepResponse::StepResponse(int steps, std::size_t stride, std::size_t count, Call call, const void *step) {
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
    call(step, current.data(), states.data(), output.data());
    current.clear();
    all += sum += static_cast<double>(output[0]);
    sums.push_back(static_cast<float>(sum));
  }
  total = static_cast<float>(all);
}

void count(const Worker &w, const Source &source, int delay, const StepResponse &response, Rows &counts) {
  counts.clear(w, 0);
  const int steps = static_cast<int>(response.sums.size());
  for (int t = 0; t < steps; ++t) {
    const float weight = response.sums[static_cast<std::size_t>(steps - 1 - t)];
    for (int b = 0; b < w.count; ++b) {
      const List list = source.list(w, t - delay, b);
      float *row = counts.row(0, w.first + b);
      for (std::size_t e = 0; e < list.count; ++e)
        row[list.ids[e]] += weight;
    }
  }
}

void scale(const Worker &w, Rows &rows, int t, float factor) {
  float *numbers = rows.row(t, w.first);
  for (std::size_t i = 0; i < rows.share(w); ++i)
    numbers[i] *= factor;
}

void add_scaled(const Worker &w, const Rows &from, float factor, Rows &to, int then) {
  const float *given = from.row(0, w.first);
  float *sum = to.row(then, w.first);
  for (std::size_t i = 0; i < to.share(w); ++i)
    sum[i] += factor * given[i];
}

} // namespace snnc
