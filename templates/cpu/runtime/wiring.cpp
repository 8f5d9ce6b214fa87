#include "wiring.hpp"

namespace snnc {

Array<float> constants(const Table &bits) {
  Array<float> made(bits.numbers.size());
  std::memcpy(made.data(), bits.numbers.data(), bits.numbers.size() * sizeof(float));
  return made;
}

Wiring::Wiring(const Table &starts, const Table &wires) : begin(starts), entries(wires) {
  const std::size_t sources = begin.numbers.size() - 1, offset = entries.numbers.empty() ? 0 : to(0);
  bool in_order = sources > 0 && entries.rows() == sources, one = true, own = true;
  for (std::size_t i = 0; in_order && i < sources; ++i) {
    in_order = begin.numbers[i] == i && to(i) == offset + i;
    one = one && index(i) == 0;
    own = own && index(i) == i;
  }
  single = one;
  first = in_order && (one || own) ? static_cast<long long>(offset) : -1;
}

void Wiring::forward(const Worker &w, const Source &source, int t, const float *weights, Rows &target, int now, Scratch &scratch) const {
  const std::size_t size = source.rows.size;
  for (int b = 0; b < w.count; ++b) {
    float *result = target.row(now, w.first + b);
    if (first >= 0 && !source.listed) {
      const float *row = source.rows.row(t, w.first + b);
      result += first;
      for (std::size_t i = 0; i < size; ++i)
        result[i] += weights[single ? 0 : i] * row[i];
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
      for (std::size_t i = 0; i < adjoint.size; ++i)
        result[i] += weights[single ? 0 : i] * row[i];
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

void add_bias(const Worker &w, Rows &target, int now, const float *bias, const Table &index) {
  for (int b = 0; b < w.count; ++b) {
    float *row = target.row(now, w.first + b);
    for (std::size_t i = 0; i < target.size; ++i)
      row[i] += bias[index.numbers[i]];
  }
}

void add_bias_gradient(const Worker &w, const Rows &delta, int t, float *gradient, const Table &index) {
  for (int b = 0; b < w.count; ++b) {
    const float *row = delta.row(t, w.first + b);
    for (std::size_t i = 0; i < delta.size; ++i)
      gradient[index.numbers[i]] += row[i];
  }
}

} // namespace snnc
