#include "lists.hpp"

namespace snnc {

template class Array<float>;
template class Array<std::uint32_t>;
template class Array<BFloat16>;
template class PerWorker<Array<float>>;
template class RowsOf<float>;
template class RowsOf<BFloat16>;

Source::Source(std::size_t numbers, int steps_before) : rows(numbers, steps_before) {}
Source::~Source() = default;

std::size_t count_nonzero(const float *numbers, std::size_t count) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i)
    found += numbers[i] != 0.0f;
  return found;
}

namespace {

template <class Centre> void keep_distances(const Worker &w, const Rows &from, int t, History &to, const Centre &centre) {
  for (int b = w.first; b < w.first + w.count; ++b) {
    const float *row = from.row(t, b);
    BFloat16 *kept = to.row(t, b);
    for (std::size_t i = 0; i < from.size; ++i)
      kept[i] = rounded(row[i] - centre(i));
  }
}

} // namespace

void keep_rounded(const Worker &w, const Rows &from, int t, History &to, float centre) {
  keep_distances(w, from, t, to, [=](std::size_t) { return centre; });
}
void keep_rounded(const Worker &w, const Rows &from, int t, History &to, const float *centres) {
  keep_distances(w, from, t, to, [=](std::size_t i) { return centres[i]; });
}

void copy_step(const Worker &w, const Rows &from, int t, Rows &to, int then) {
  std::memcpy(to.row(then, w.first), from.row(t, w.first), to.share(w) * sizeof(float));
}

void add_step(const Worker &w, const Rows &from, int t, Rows &to, int then) {
  const float *given = from.row(t, w.first);
  float *sum = to.row(then, w.first);
  for (std::size_t i = 0; i < to.share(w); ++i)
    sum[i] += given[i];
}

float sum_of(const Array<float> &numbers, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += static_cast<double>(numbers[i]);
  return static_cast<float>(sum);
}

} // namespace snnc
