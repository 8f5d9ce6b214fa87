#include "checkpoints.hpp"

namespace snnc {

void Checkpoints::restart(int steps, int length) {
  all.clear();
  segment = length;
  segments = (steps + length - 1) / length;
}

void Checkpoints::keep(Rows &rows, int held) {
  const std::size_t count = static_cast<std::size_t>(segments) * static_cast<std::size_t>(held);
  if (held > 0)
    all.push_back({&rows, held, Array<float>(count * static_cast<std::size_t>(rows.batch) * rows.stride)});
}

float *Checkpoints::place(Kept &of, const Worker &w, int first, int before) const {
  const std::size_t row =
      static_cast<std::size_t>(first / segment) * static_cast<std::size_t>(of.held) + static_cast<std::size_t>(before - 1);
  return of.numbers.data() + (row * static_cast<std::size_t>(of.rows->batch) + static_cast<std::size_t>(w.first)) * of.rows->stride;
}

void Checkpoints::save(const Worker &w, int first) {
  for (Kept &of : all)
    for (int before = 1; before <= of.held; ++before)
      std::memcpy(place(of, w, first, before), of.rows->row(first - before, w.first), of.rows->share(w) * sizeof(float));
}

void Checkpoints::restore(const Worker &w, int first) {
  for (Kept &of : all)
    for (int before = 1; before <= of.held; ++before)
      std::memcpy(of.rows->row(first - before, w.first), place(of, w, first, before), of.rows->share(w) * sizeof(float));
}

} // namespace snnc
