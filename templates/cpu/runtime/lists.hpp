// Lists of the nonzero values of rows, the same events by source neuron, and temporary memory for them.
#ifndef SNNC_LISTS_HPP
#define SNNC_LISTS_HPP

#include "values.hpp"

namespace snnc {

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
  void restart(int samples, bool with_values, std::size_t rows);
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

inline List Source::list(const Worker &w, int t, int b) const {
  return lists[static_cast<std::size_t>(w.index)].at(static_cast<std::size_t>(t + rows.past), static_cast<std::size_t>(b));
}

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
