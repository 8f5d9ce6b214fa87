#include "wiring.hpp"

#include "lists.hpp"
#include "vectors.hpp"

#include <algorithm>

namespace snnc {

Array<float> constants(const Table &bits) {
  Array<float> made(bits.numbers.size());
  std::memcpy(made.data(), bits.numbers.data(), bits.numbers.size() * sizeof(float));
  return made;
}

/// Returns the length of the runs if the indices are 0, 0 ... 1, 1 ... in runs of equal length; otherwise 0.
template <class Index> std::size_t run_of(std::size_t count, const Index &index) {
  std::size_t run = 0;
  while (run < count && index(run) == 0)
    ++run;
  if (run == 0 || count % run != 0)
    return 0;
  for (std::size_t i = run; i < count; ++i)
    if (index(i) != i / run)
      return 0;
  return run;
}

float sum_of_products(const float *left, const float *right, std::size_t count) {
  Vector sum{};
  std::size_t i = 0;
  for (; i + LANES <= count; i += LANES)
    sum = add_product(sum, load_anywhere(left + i), load_anywhere(right + i));
  float found = sum_of_lanes(sum);
  for (; i < count; ++i)
    found += left[i] * right[i];
  return found;
}

float sum_of_numbers(const float *numbers, std::size_t count) {
  Vector sum{};
  std::size_t i = 0;
  for (; i + LANES <= count; i += LANES)
    sum += load_anywhere(numbers + i);
  float found = sum_of_lanes(sum);
  for (; i < count; ++i)
    found += numbers[i];
  return found;
}

inline std::size_t Wiring::to(std::size_t entry) const { return entries.numbers[2 * entry]; }
inline std::size_t Wiring::index(std::size_t entry) const { return entries.numbers[2 * entry + 1]; }

template <class Use> void Wiring::for_runs(const Use &use) const {
  const std::size_t sources = begin.numbers.size() - 1;
  for (std::size_t at = 0, weight = 0; at < sources; at += run, ++weight)
    use(at, run, weight);
}

Wiring::Wiring(const Table &starts, const Table &wires) : begin(starts), entries(wires) {
  const std::size_t sources = begin.numbers.size() - 1, offset = entries.numbers.empty() ? 0 : to(0);
  bool in_order = sources > 0 && entries.rows() == sources;
  for (std::size_t i = 0; in_order && i < sources; ++i)
    in_order = begin.numbers[i] == i && to(i) == offset + i;
  const std::size_t found = in_order ? run_of(sources, [this](std::size_t i) { return index(i); }) : 0;
  run = std::max<std::size_t>(1, found);
  first = found != 0 ? static_cast<long long>(offset) : -1;
}

void Wiring::forward(const Worker &w, const Source &source, int t, const float *weights, Rows &target, int now, Scratch &scratch) const {
  const std::size_t size = source.rows.size;
  for (int b = 0; b < w.count; ++b) {
    float *result = target.row(now, w.first + b);
    if (first >= 0 && !source.listed) {
      const float *row = source.rows.row(t, w.first + b);
      result += first;
      if (run == 1)
        for (std::size_t i = 0; i < size; ++i)
          result[i] += weights[i] * row[i];
      else
        for_runs([&](std::size_t at, std::size_t count, std::size_t weight) {
          for (std::size_t i = at; i < at + count; ++i)
            result[i] += weights[weight] * row[i];
        });
      continue;
    }
    const List list = scratch.list(source, w, t, b);
    for (std::size_t n = 0; n < list.count; ++n) {
      const float value = list.values == nullptr ? 1.0f : list.values[n];
      const std::size_t last = begin.numbers[list.ids[n] + 1];
      for (std::size_t e = begin.numbers[list.ids[n]]; e < last; ++e)
        result[to(e)] += value * weights[index(e)];
    }
  }
}

void Wiring::weight_gradient(const Worker &w, const Source &source, int delay, const Rows &delta, int t, float *gradient,
                             Scratch &scratch) const {
  for (int b = 0; b < w.count; ++b) {
    const float *row = delta.row(t, w.first + b);
    if (first >= 0 && !source.listed) {
      const float *values = source.rows.row(t - delay, w.first + b);
      row += first;
      if (run == 1)
        for (std::size_t i = 0; i < source.rows.size; ++i)
          gradient[i] += values[i] * row[i];
      else
        for_runs([&](std::size_t at, std::size_t count, std::size_t weight) {
          gradient[weight] += sum_of_products(values + at, row + at, count);
        });
      continue;
    }
    const List list = scratch.list(source, w, t - delay, b);
    for (std::size_t n = 0; n < list.count; ++n) {
      const float value = list.values == nullptr ? 1.0f : list.values[n];
      const std::size_t last = begin.numbers[list.ids[n] + 1];
      for (std::size_t e = begin.numbers[list.ids[n]]; e < last; ++e)
        gradient[index(e)] += value * row[to(e)];
    }
  }
}

void Wiring::input_gradient(const Worker &w, const Rows &delta, int t, const float *weights, Rows &adjoint, int delay) const {
  if (t < delay)
    return;
  for (int b = 0; b < w.count; ++b) {
    const float *row = delta.row(t, w.first + b);
    float *result = adjoint.row(t - delay, w.first + b);
    if (first >= 0) {
      row += first;
      if (run == 1)
        for (std::size_t i = 0; i < adjoint.size; ++i)
          result[i] += weights[i] * row[i];
      else
        for_runs([&](std::size_t at, std::size_t count, std::size_t weight) {
          for (std::size_t i = at; i < at + count; ++i)
            result[i] += weights[weight] * row[i];
        });
      continue;
    }
    for (std::size_t i = 0; i < adjoint.size; ++i) {
      float sum = 0;
      for (std::size_t e = begin.numbers[i]; e < begin.numbers[i + 1]; ++e)
        sum += weights[index(e)] * row[to(e)];
      result[i] += sum;
    }
  }
}

Biases::Biases(const Table &of) : index(of), run(run_of(of.numbers.size(), [&of](std::size_t i) { return of.numbers[i]; })) {}

void Biases::forward(const Worker &w, Rows &target, int now, const float *bias) const {
  for (int b = 0; b < w.count; ++b) {
    float *row = target.row(now, w.first + b);
    if (run == 0)
      for (std::size_t i = 0; i < target.size; ++i)
        row[i] += bias[index.numbers[i]];
    else
      for (std::size_t at = 0, k = 0; at < target.size; at += run, ++k)
        for (std::size_t i = at; i < at + run; ++i)
          row[i] += bias[k];
  }
}

void Biases::gradient(const Worker &w, const Rows &delta, int t, float *gradient) const {
  for (int b = 0; b < w.count; ++b) {
    const float *row = delta.row(t, w.first + b);
    if (run == 0)
      for (std::size_t i = 0; i < delta.size; ++i)
        gradient[index.numbers[i]] += row[i];
    else
      for (std::size_t at = 0, k = 0; at < delta.size; at += run, ++k)
        gradient[k] += run == 1 ? row[at] : sum_of_numbers(row + at, run);
  }
}

} // namespace snnc
