// The state before the first step of a sequence: initial values, or the final state of the previous sequence.
#include "cpu_session.hpp"

#include "lists.hpp"

namespace snnc {

void CpuSession::begin_rows(const Worker &w, Rows &rows, const Initial *initial) {
  if (resume != 0)
    return go_on(w, rows);
  for (int t = -std::min(rows.past, rows.slots); t < 0; ++t) {
    rows.clear(w, t);
    for (int b = w.first; initial != nullptr && b < w.first + w.count; ++b) {
      const InitialValues &values = *initial->values;
      std::memcpy(rows.row(t, b), values.of_sample(static_cast<std::size_t>(b)), values.size * sizeof(float));
    }
  }
}

void CpuSession::go_on(const Worker &w, Rows &rows) const {
  // Ring buffers have fewer steps than lists, and the destination of a row may contain one that has not been moved yet.
  const int held = std::min(rows.past, rows.slots - 1);
  std::vector<float> kept(rows.share(w) * static_cast<std::size_t>(held));
  const auto place = [&](int t) { return kept.data() + rows.share(w) * static_cast<std::size_t>(t + held); };
  for (int t = -held; t < 0; ++t)
    std::memcpy(place(t), rows.row(t + steps, w.first), rows.share(w) * sizeof(float));
  for (int t = -held; t < 0; ++t)
    std::memcpy(rows.row(t, w.first), place(t), rows.share(w) * sizeof(float));
}

void CpuSession::begin_lists(const Worker &w, Source &source, const Initial *initial) {
  Lists &lists = source.lists[static_cast<std::size_t>(w.index)];
  std::vector<std::vector<std::uint32_t>> ids;
  std::vector<std::vector<float>> values;
  if (resume != 0)
    for (int t = steps - source.rows.past; t < steps; ++t)
      for (int b = 0; b < w.count; ++b) {
        const List list = source.list(w, t, b);
        ids.emplace_back(list.ids, list.ids + list.count);
        values.emplace_back(list.values, list.values == nullptr ? nullptr : list.values + list.count);
      }
  lists.restart(w.count, source.valued, static_cast<std::size_t>(steps + source.rows.past) * static_cast<std::size_t>(w.count));
  for (int t = -source.rows.past, n = 0; t < 0; ++t)
    for (int b = 0; b < w.count; ++b, ++n) {
      if (resume != 0)
        lists.append({ids[static_cast<std::size_t>(n)].data(), source.valued ? values[static_cast<std::size_t>(n)].data() : nullptr,
                      ids[static_cast<std::size_t>(n)].size()});
      else if (initial == nullptr)
        lists.append(List{});
      else
        lists.append(initial->values->of_sample(static_cast<std::size_t>(w.first + b)), initial->values->size);
    }
}

void CpuSession::begin(const Worker &w) {
  for (Initial &initial : initials)
    if (initial.rows != nullptr)
      begin_rows(w, *initial.rows, &initial);
  for (const auto &[name, source] : sources) {
    const Initial *own = nullptr;
    for (const Initial &initial : initials)
      own = initial.source == source ? &initial : own;
    begin_rows(w, source->rows, own);
    if (source->listed)
      begin_lists(w, *source, own);
  }
}

} // namespace snnc
