#include "maximum.hpp"

#include "lists.hpp"

namespace snnc {

Maximum::Maximum(const Table &starts, const Table &sources) : begin(starts), entries(sources) {}
Maximum::~Maximum() = default;

inline std::size_t Maximum::targets() const { return begin.numbers.size() - 1; }

inline std::uint32_t *Maximum::choices_of(int t, int sample) {
  return choices.data() +
         (static_cast<std::size_t>(t % slots) * static_cast<std::size_t>(batch) + static_cast<std::size_t>(sample)) * targets();
}

std::uint32_t Maximum::chosen(const float *row, std::size_t target) const {
  const std::uint32_t *entry = entries.numbers.data() + begin.numbers[target];
  const std::size_t count = begin.numbers[target + 1] - begin.numbers[target];
  if (count == 4) {
    // The maxima of two pairs, then their maximum; of equal values, the first.
    const std::uint32_t one = row[entry[1]] > row[entry[0]] ? entry[1] : entry[0],
                        other = row[entry[3]] > row[entry[2]] ? entry[3] : entry[2];
    return row[other] > row[one] ? other : one;
  }
  std::uint32_t best = entry[0];
  for (std::size_t e = 1; e < count; ++e)
    if (row[entry[e]] > row[best])
      best = entry[e];
  return best;
}

void Maximum::keep(int steps, int samples) {
  slots = steps;
  batch = samples;
  choices.resize(static_cast<std::size_t>(steps) * static_cast<std::size_t>(samples) * targets());
}

void Maximum::forward(const Worker &w, const Source &source, int t, Rows &target, int now) {
  for (int b = w.first; b < w.first + w.count; ++b) {
    const float *row = source.rows.row(t, b);
    float *result = target.row(now, b);
    std::uint32_t *choice = slots == 0 ? nullptr : choices_of(now, b);
    for (std::size_t i = 0; i < targets(); ++i) {
      const std::uint32_t best = chosen(row, i);
      result[i] += row[best];
      if (choice != nullptr)
        choice[i] = best;
    }
  }
}

void Maximum::input_gradient(const Worker &w, const Rows &delta, int t, Rows &adjoint, int delay) {
  if (t < delay)
    return;
  for (int b = w.first; b < w.first + w.count; ++b) {
    const std::uint32_t *choice = choices_of(t, b);
    const float *given = delta.row(t, b);
    float *result = adjoint.row(t - delay, b);
    for (std::size_t i = 0; i < targets(); ++i)
      result[choice[i]] += given[i];
  }
}

SpikeMaximum::SpikeMaximum(const Table &starts, const Table &sources, std::size_t size) : begin(size + 1), targets(sources.numbers.size()) {
  const std::size_t count = starts.numbers.size() - 1;
  for (const std::uint32_t source : sources.numbers)
    ++begin[source + 1];
  for (std::size_t i = 0; i < size; ++i)
    begin[i + 1] += begin[i];
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  first.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    first.push_back(sources.numbers[starts.numbers[i]]);
    for (std::size_t e = starts.numbers[i]; e < starts.numbers[i + 1]; ++e)
      targets[next[sources.numbers[e]]++] = static_cast<std::uint32_t>(i);
  }
}

SpikeMaximum::~SpikeMaximum() = default;

void SpikeMaximum::forward(const Worker &w, const Source &source, int t, Rows &target, int now, Scratch &scratch) const {
  for (int b = 0; b < w.count; ++b) {
    float *found = scratch.zeros(first.size());
    const List list = source.list(w, t, b);
    for (std::size_t e = 0; e < list.count; ++e)
      for_targets(list.ids[e], [&](std::size_t i) { found[i] = 1.0f; });
    float *result = target.row(now, w.first + b);
    for (std::size_t i = 0; i < first.size(); ++i)
      result[i] += found[i];
  }
}

void SpikeMaximum::input_gradient(const Worker &w, const Source &source, const Rows &delta, int t, Rows &adjoint, int delay,
                                  Scratch &scratch) const {
  if (t < delay)
    return;
  std::vector<std::uint32_t> &chosen = scratch.starts();
  for (int b = 0; b < w.count; ++b) {
    chosen.assign(first.begin(), first.end());
    const List list = source.list(w, t - delay, b);
    // Written from the end, so that the first source that fired is kept.
    for (std::size_t e = list.count; e-- != 0;)
      for_targets(list.ids[e], [&](std::size_t i) { chosen[i] = list.ids[e]; });
    const float *given = delta.row(t, w.first + b);
    float *result = adjoint.row(t - delay, w.first + b);
    for (std::size_t i = 0; i < first.size(); ++i)
      result[chosen[i]] += given[i];
  }
}

} // namespace snnc
