// Inputs: spikes and sparse values are stored as lists, other values as rows.
#include "cpu_session.hpp"

#include "lists.hpp"

namespace snnc {

namespace {

/// One in this many rows is sampled.
constexpr std::size_t SAMPLED = 16;

bool is_sparse(const float *data, std::size_t rows, std::size_t size) {
  std::size_t found = 0, seen = 0;
  for (std::size_t row = 0; row < rows; row += SAMPLED, seen += size)
    for (std::size_t i = 0; i < size; ++i)
      found += data[row * size + i] != 0.0f;
  return found * LISTED_PART <= seen;
}

/// Checks `count` values of a row for spikes: those at `ids`, or the first ones.
void ask_for_spikes(const std::string &name, const float *row, const std::uint32_t *ids, std::size_t count) {
  int wrong = 0;
  if (ids == nullptr)
    for (std::size_t i = 0; i < count; ++i)
      wrong |= (row[i] != 0.0f) & (row[i] != 1.0f);
  else
    for (std::size_t e = 0; e < count; ++e)
      wrong |= row[ids[e]] != 1.0f;
  if (wrong != 0)
    throw std::invalid_argument("input " + name + " takes spikes, 0 or 1; another number was given");
}

} // namespace

void CpuSession::set_input(Input &input, const float *data) {
  const std::size_t rows = static_cast<std::size_t>(steps) * static_cast<std::size_t>(batch);
  const bool listed = input.lists && (input.spikes || is_sparse(data, rows, input.source->rows.size));
  keep_input(input, listed);
  in_parallel(static_cast<int>(workers.size()), [&](int i) { fill_input(input, workers[static_cast<std::size_t>(i)], data, listed); });
  input.source->listed = listed;
  input.filled = true;
}

void CpuSession::set_events(std::size_t index, const std::uint64_t *begin, const std::uint32_t *ids) {
  for (Input &input : inputs)
    if (input.name == infos.at(index).name) {
      keep_input(input, input.lists);
      in_parallel(static_cast<int>(workers.size()), [&](int i) { fill_events(input, workers[static_cast<std::size_t>(i)], begin, ids); });
      input.source->listed = input.lists;
      input.filled = true;
    }
}

void CpuSession::keep_input(Input &input, bool listed) {
  Source &source = *input.source;
  const int slots = steps + source.rows.past;
  // Rows are stored if something reads them; they also contain the steps before a continued sequence.
  if ((input.dense || !listed) && (source.rows.slots != slots || source.rows.batch != batch || source.rows.data.size() == 0))
    source.rows.resize(slots, batch);
  source.lists.resize(workers.size());
  source.valued = !input.spikes;
}

void CpuSession::fill_events(Input &input, const Worker &w, const std::uint64_t *begin, const std::uint32_t *ids) {
  Source &source = *input.source;
  const bool kept = input.dense || !input.lists;
  if (kept)
    begin_rows(w, source.rows, nullptr);
  if (input.lists)
    begin_lists(w, source, nullptr);
  for (int t = 0; t < steps; ++t) {
    if (kept)
      source.rows.clear(w, t);
    for (int b = w.first; b < w.first + w.count; ++b) {
      const std::size_t row = static_cast<std::size_t>(t) * static_cast<std::size_t>(batch) + static_cast<std::size_t>(b);
      const List list{ids + begin[row], nullptr, static_cast<std::size_t>(begin[row + 1] - begin[row])};
      for (std::size_t e = 0; kept && e < list.count; ++e)
        source.rows.row(t, b)[list.ids[e]] = 1.0f;
      if (!input.lists)
        continue;
      Lists &lists = source.lists[static_cast<std::size_t>(w.index)];
      lists.append(list);
      source.limit.apply(lists, t);
    }
  }
}

void CpuSession::fill_input(Input &input, const Worker &w, const float *data, bool listed) {
  Source &source = *input.source;
  const bool kept = input.dense || !listed;
  if (kept)
    begin_rows(w, source.rows, nullptr);
  if (listed)
    begin_lists(w, source, nullptr);
  const std::size_t size = source.rows.size;
  for (int t = 0; t < steps; ++t)
    for (int b = w.first; b < w.first + w.count; ++b) {
      const float *row = data + (static_cast<std::size_t>(t) * static_cast<std::size_t>(batch) + static_cast<std::size_t>(b)) * size;
      if (input.spikes && !listed)
        ask_for_spikes(input.name, row, nullptr, size);
      if (kept)
        std::memcpy(source.rows.row(t, b), row, size * sizeof(float));
      if (!listed)
        continue;
      Lists &lists = source.lists[static_cast<std::size_t>(w.index)];
      lists.append(row, size);
      const List found = lists.last();
      if (input.spikes)
        ask_for_spikes(input.name, row, found.ids, found.count);
      source.limit.apply(lists, t);
    }
}

} // namespace snnc
