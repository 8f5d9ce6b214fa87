// Values of a sequence: dense rows by step and sample, and lists of the nonzero values.
#ifndef SNNC_VALUES_HPP
#define SNNC_VALUES_HPP

#include "arrays.hpp"

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
  /// Clears the elements after the last value of each row.
  void clear_padding(const Worker &w, int t) {
    for (int b = w.first; b < w.first + w.count; ++b)
      std::memset(row(t, b) + size, 0, (padded(size) - size) * sizeof(T));
  }

  const std::size_t size, stride;
  const int past;
  int slots = 1, batch = 1;
  Array<T> data;
};

using Rows = RowsOf<float>;
/// Values of all steps for the backward pass, in 16 bits.
using History = RowsOf<BFloat16>;
extern template class RowsOf<float>;
extern template class RowsOf<BFloat16>;

/// Stores the differences between a worker's rows of step `t` and an offset, which is one value or one per neuron.
void keep_rounded(const Worker &w, const Rows &from, int t, History &to, float centre);
void keep_rounded(const Worker &w, const Rows &from, int t, History &to, const float *centres);

std::size_t count_nonzero(const float *numbers, std::size_t count);

class Lists;
class Scratch;

/// Maximum number of spikes that a source sends per step, and the random key: parameters of the network.
struct SpikeLimit {
  const Array<float> *capacity = nullptr, *key = nullptr;
  std::atomic<std::uint64_t> *dropped = nullptr;

  void apply(Lists &to, int step) const;
};

/// A buffer that connections read: dense rows, lists, or both.
class Source {
public:
  Source(std::size_t numbers, int steps_before);
  ~Source();

  Rows rows;
  std::vector<Lists> lists;
  /// Whether `lists` contain at least all nonzero values of `rows`, so that readers can use them instead.
  bool listed = false;
  /// Whether the lists contain values besides ids.
  bool valued = false;
  /// Whether only the listed neurons may receive a gradient, because dropped spikes receive none.
  bool only_listed = false;
  SpikeLimit limit;

  /// Returns the fraction of values that are listed; negative if no row was listed.
  double share() const;
  /// Lists the rows of step t, which follows the last listed step.
  void list_rows(const Worker &w, int t);
  /// Removes neurons from the rows of `near` (neurons that receive a gradient) if their spike of step t was dropped.
  void forget_dropped(const Worker &w, int t, Source &near) const;
  List list(const Worker &w, int t, int b) const;
};

/// Copies, or adds, a worker's rows of a step to those of another buffer.
void copy_step(const Worker &w, const Rows &from, int t, Rows &to, int then);
void add_step(const Worker &w, const Rows &from, int t, Rows &to, int then);

/// Returns the sum of the first `count` values.
float sum_of(const Array<float> &numbers, std::size_t count);

} // namespace snnc

#endif
