// Values of a sequence: dense rows by step and sample, and lists of the nonzero values.
#ifndef SNNC_VALUES_HPP
#define SNNC_VALUES_HPP

#include "vectors.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace snnc {

/// A thread and its samples: first ... first + count - 1.
struct Worker {
  int index = 0;
  int first = 0;
  int count = 0;
  /// Whether its gradients are stale or missing, so that they are overwritten instead of added to.
  bool fresh = true;
};

/// The indices of a row's nonzero values, ascending; `values` is null if all of them are 1.
struct List {
  const std::uint32_t *ids = nullptr;
  const float *values = nullptr;
  std::size_t count = 0;
};

/// Rows [slot][sample][stride]. Steps -past ... -1 precede the sequence; if there are fewer slots than steps, the slots are a ring buffer.
template <class T> class RowsOf {
public:
  RowsOf(std::size_t numbers, int steps_before) : size(numbers), stride(pitch(numbers)), past(steps_before) {}

  /// Allocates `kept` slots of `samples` rows, all 0.
  void resize(int kept, int samples) {
    slots = kept;
    batch = samples;
    data.resize(static_cast<std::size_t>(kept) * static_cast<std::size_t>(samples) * stride);
  }
  std::size_t index(int t, int sample) const {
    return static_cast<std::size_t>((t + past) % slots) * static_cast<std::size_t>(batch) + static_cast<std::size_t>(sample);
  }
  T *row(int t, int sample) { return data.data() + index(t, sample) * stride; }
  const T *row(int t, int sample) const { return data.data() + index(t, sample) * stride; }
  /// Returns the number of elements in all rows of a worker at a step, which are contiguous.
  std::size_t share(const Worker &w) const { return static_cast<std::size_t>(w.count) * stride; }
  void clear(const Worker &w, int t) { std::memset(row(t, w.first), 0, share(w) * sizeof(T)); }

  const std::size_t size, stride;
  const int past;
  int slots = 1, batch = 1;
  Array<T> data;
};

using Rows = RowsOf<float>;
/// Values of all steps for the backward pass, in 16 bits.
using History = RowsOf<BFloat16>;

/// Stores the differences between a worker's rows of step `t` and an offset, which is one value or one per neuron.
void keep_rounded(const Worker &w, const Rows &from, int t, History &to, float centre);
void keep_rounded(const Worker &w, const Rows &from, int t, History &to, const float *centres);

/// Allocates at least `wanted` elements; the old contents are lost.
template <class T> void make_room(std::vector<T> &of, std::size_t wanted) {
  if (wanted <= of.size())
    return;
  of = std::vector<T>();
  of.reserve(wanted + wanted / ROOM_PART);
  of.resize(of.capacity());
}

/// The lists of a worker's samples, step by step.
class Lists {
public:
  /// Starts over; `rows` rows will be listed.
  void restart(int samples, bool with_values, std::size_t rows) {
    own = static_cast<std::size_t>(samples);
    valued = with_values;
    used = 0;
    begin.assign(1, 0);
    begin.reserve(rows + 1);
  }
  /// Appends the next sample's list.
  void append(const float *row, std::size_t size);
  void append(const List &list);
  List at(std::size_t slot, std::size_t sample) const {
    const std::size_t from = begin[slot * own + sample], to = begin[slot * own + sample + 1];
    return {ids.data() + from, valued ? values.data() + from : nullptr, to - from};
  }
  /// Returns the last list that was appended.
  List last() const { return at(0, begin.size() - 2); }
  /// Keeps at most `capacity` entries of the last list, selected by the step and the random key; returns how many are dropped.
  std::size_t limit_last(std::size_t capacity, float key, int step);
  std::size_t entries() const { return used; }
  std::size_t rows() const { return begin.empty() ? 0 : begin.size() - 1; }

private:
  std::size_t own = 0, used = 0;
  bool valued = false;
  std::vector<std::size_t> begin;
  std::vector<std::uint32_t> ids;
  std::vector<float> values;
  void grow(std::size_t more);
};

/// Writes the ids of the nonzero values of `row` (`ids` has space for size + LINE) and, unless null, the values; returns their number.
std::size_t find_nonzero(const float *row, std::size_t size, std::uint32_t *ids, float *values);

std::size_t count_nonzero(const float *numbers, std::size_t count);

/// Maximum number of spikes that a source sends per step, and the random key: parameters of the network.
struct SpikeLimit {
  const Array<float> *capacity = nullptr, *key = nullptr;
  std::atomic<std::uint64_t> *dropped = nullptr;

  void apply(Lists &to, int step) const {
    if (capacity == nullptr)
      return;
    const std::size_t gone = to.limit_last(static_cast<std::size_t>((*capacity)[0]), (*key)[0], step);
    if (gone != 0)
      dropped->fetch_add(gone, std::memory_order_relaxed);
  }
};

/// A buffer that connections read: dense rows, lists, or both.
class Source {
public:
  Source(std::size_t numbers, int steps_before) : rows(numbers, steps_before) {}

  Rows rows;
  std::vector<Lists> lists;
  /// Whether `lists` contain at least all nonzero values of `rows`, so that readers can use them instead.
  bool listed = false;
  /// Whether the lists contain values besides ids.
  bool valued = false;
  /// Whether only the listed neurons may receive gradient, because dropped spikes receive none.
  bool only_listed = false;
  SpikeLimit limit;

  /// Returns the fraction of values that are listed; negative if no row was listed.
  double share() const {
    double entries = 0, numbers = 0;
    for (const Lists &own : lists) {
      entries += static_cast<double>(own.entries());
      numbers += static_cast<double>(own.rows()) * static_cast<double>(rows.size);
    }
    return numbers == 0 ? -1 : entries / numbers;
  }
  /// Lists the rows of step t, which follows the last listed step.
  void list_rows(const Worker &w, int t) {
    Lists &own = lists[static_cast<std::size_t>(w.index)];
    for (int b = 0; b < w.count; ++b) {
      own.append(rows.row(t, w.first + b), rows.size);
      limit.apply(own, t);
    }
  }
  /// Removes neurons from the rows of `near` (neurons that receive gradient) if their spike of step t was dropped.
  void forget_dropped(const Worker &w, int t, Source &near) const {
    for (int b = 0; b < w.count; ++b) {
      const List kept = list(w, t, b);
      const float *row = rows.row(t, w.first + b);
      float *own = near.rows.row(t, w.first + b);
      for (std::size_t i = 0, e = 0; i < rows.size; ++i) {
        if (row[i] == 0.0f)
          continue;
        if (e < kept.count && kept.ids[e] == i)
          ++e;
        else
          own[i] = 0.0f;
      }
    }
  }
  List list(const Worker &w, int t, int b) const {
    return lists[static_cast<std::size_t>(w.index)].at(static_cast<std::size_t>(t + rows.past), static_cast<std::size_t>(b));
  }
};

/// Copies, or adds, a worker's rows of a step to those of another buffer.
void copy_step(const Worker &w, const Rows &from, int t, Rows &to, int then);
void add_step(const Worker &w, const Rows &from, int t, Rows &to, int then);

/// Returns the sum of the first `count` values.
float sum_of(const Array<float> &numbers, std::size_t count);

class Scratch;

/// Neurons first ... last - 1 of a source, in the samples of `count` workers.
struct Part {
  const Worker *workers;
  std::size_t count, first, last;
};

/// Events of a block of steps, transposed: the rows of the block in which a source neuron has events.
class Columns {
public:
  void gather(const Source &source, const Worker &w, int delay, const Rows &delta, int first, int last, Scratch &scratch) {
    gather(source, {&w, 1, 0, source.rows.size}, delay, delta, first, last, scratch);
  }
  /// Gathers the events of some neurons, in the samples of several workers.
  void gather(const Source &source, const Part &part, int delay, const Rows &delta, int first, int last, Scratch &scratch);
  /// Returns the rows of a neuron, counted from the first gathered neuron.
  List of(std::size_t neuron) const {
    const std::size_t from = begin[neuron];
    return {row.data() + from, valued ? value.data() + from : nullptr, begin[neuron + 1] - from};
  }

private:
  bool valued = false;
  std::vector<std::size_t> begin;
  std::vector<std::uint32_t> row;
  std::vector<float> value;
};

/// Temporary memory of a worker; it also creates lists of rows for sources that store no lists.
class Scratch {
public:
  Columns columns;

  List list(const float *row, std::size_t size) {
    make_room(ids, size + LINE);
    make_room(values, size + LINE);
    const std::size_t count = find_nonzero(row, size, ids.data(), values.data());
    return {ids.data(), values.data(), count};
  }
  List list(const Source &source, const Worker &w, int t, int b) {
    return source.listed ? source.list(w, t, b) : list(source.rows.row(t, w.first + b), source.rows.size);
  }
  /// Returns the list of neurons first ... last - 1; if no lists are stored, ids count from `first`.
  List list(const Source &source, const Worker &w, int t, int b, std::size_t first, std::size_t last) {
    if (!source.listed)
      return list(source.rows.row(t, w.first + b) + first, last - first);
    const List whole = source.list(w, t, b);
    if (first == 0 && last == source.rows.size)
      return whole;
    const std::uint32_t *from = std::lower_bound(whole.ids, whole.ids + whole.count, static_cast<std::uint32_t>(first));
    const std::uint32_t *to = std::lower_bound(from, whole.ids + whole.count, static_cast<std::uint32_t>(last));
    return {from, whole.values == nullptr ? nullptr : whole.values + (from - whole.ids), static_cast<std::size_t>(to - from)};
  }

  /// Returns `count` zeros.
  float *zeros(std::size_t count) {
    sums.assign(count, 0.0f);
    return sums.data();
  }

  /// Returns a worker's rows of steps first ... last - 1 as pairs of bfloat16; an odd row is padded with 0.
  const std::uint32_t *pairs_of(const Worker &w, const Rows &rows, int first, int last);

  /// Space for the ids of another list.
  std::vector<std::uint32_t> &starts() { return more; }

  /// Returns space for `count` values; each `which` has its own, whose old contents are lost.
  float *numbers(int which, std::size_t count) {
    rooms[which].reserve(count);
    return rooms[which].data();
  }

private:
  std::vector<std::uint32_t> ids, more, pairs;
  std::vector<float> values, sums;
  Array<float> rooms[3];
};

} // namespace snnc

#endif
