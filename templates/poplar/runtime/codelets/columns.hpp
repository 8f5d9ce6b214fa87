// ---- rows of columns ----------------------------------------------------------------------------------------------------------
//
// [rows][columns] is stored with its columns in pairs, so that each pair is one aligned 64-bit load: first all rows of the paired columns,
// then, if their number is odd, all rows of the last one. The columns of a sweep over a list stay in registers.

namespace {

/// Returns the number of pairs of columns; the last column of an odd number counts as a pair.
[[maybe_unused]] inline unsigned pairs(unsigned columns) { return (columns + 1) / 2; }

/// Returns the number of sweeps over a list, each with up to `most` pairs.
[[maybe_unused]] inline unsigned sweeps(unsigned columns, unsigned most) { return (pairs(columns) + most - 1) / most; }

/// Returns 1 if the last sweep reads both pairs and a single column, which are stored separately.
[[maybe_unused]] inline unsigned joined(unsigned columns, unsigned most) { return columns % 2 != 0 && pairs(columns) % most != 1 ? 1 : 0; }

/// Returns the elements of [rows][columns], rounded up so that the next array is also aligned.
[[maybe_unused]] inline unsigned long padded(unsigned long rows, unsigned columns) { return (rows * columns + 1) / 2 * 2; }

/// The columns of a sweep: P pairs, and one more column if LAST is 1.
template <unsigned P, unsigned LAST> struct Held {
  float2 pair[P == 0 ? 1 : P];
  float last;

  explicit Held(const float *__restrict from) {
    for (unsigned p = 0; p < P; ++p)
      pair[p] = float2{from[2 * p], from[2 * p + 1]};
    last = LAST != 0 ? from[2 * P] : 0.0f;
  }

  void store(float *__restrict to) const {
    for (unsigned p = 0; p < P; ++p) {
      to[2 * p] = pair[p][0];
      to[2 * p + 1] = pair[p][1];
    }
    if (LAST != 0)
      to[2 * P] = last;
  }
};

/// Lists of equal length for all samples.
struct Same {
  unsigned length;
  unsigned operator[](unsigned) const { return length; }
};

/// Returns the first element of a list for this worker: 0, unless another worker has the beginning of the list.
template <class Lengths> inline unsigned begin_of(const Lengths &, unsigned) { return 0; }

/// The share of one of `shares` workers in the concatenated lists of all samples, with an equal number of elements.
template <class Numbers> struct Share {
  Numbers numbers;
  unsigned first = 0, last = 0, skipped = 0, end = 0, runs = 0, elements = 0;

  Share(Numbers all, unsigned samples, unsigned share, unsigned shares) : numbers(all) {
    unsigned found = 0;
    for (unsigned s = 0; s < samples; ++s)
      found += numbers[s];
    const unsigned from = bound(found, share, shares), to = bound(found, share + 1, shares);
    elements = to - from;
    unsigned before = 0;
    for (unsigned s = 0; s < samples && before < to; before += numbers[s++]) {
      if (numbers[s] == 0 || before + numbers[s] <= from)
        continue;
      first = runs == 0 ? s : first;
      skipped = runs == 0 ? from - before : skipped;
      ++runs;
      last = s;
      end = to - before < numbers[s] ? to - before : numbers[s];
    }
  }

  /// The number of this worker's elements of a sample.
  unsigned operator[](unsigned s) const {
    if (runs == 0 || s < first || s > last)
      return 0;
    return (s == last ? end : numbers[s]) - (s == first ? skipped : 0);
  }

private:
  static unsigned bound(unsigned elements, unsigned share, unsigned shares) {
    return share == shares ? elements
                           : static_cast<unsigned>(static_cast<float>(elements) * static_cast<float>(share) / static_cast<float>(shares));
  }
};

template <class Numbers> inline unsigned begin_of(const Share<Numbers> &share, unsigned s) { return s == share.first ? share.skipped : 0; }

/// Runs Loop over the list of every sample, for the columns [done, done + C) of [samples][columns].
template <template <unsigned, unsigned> class Loop, unsigned C> struct Sweep {
  template <class List, class Lengths, class Row, class Column> static void
  run(const List *lists, unsigned room, Lengths lengths, unsigned samples, Row *pair, Row *last, unsigned columns, Column *held) {
    for (unsigned s = 0; s < samples; ++s, lists += room, held += columns)
      if (lengths[s] != 0)
        Loop<C / 2, C % 2>::run(lists + begin_of(lengths, s), lengths[s], pair, last, columns / 2 * 2, held);
  }
};

/// Runs a sweep over `now` columns, at most C.
template <template <unsigned, unsigned> class Loop, unsigned C> struct Choose {
  template <class... All> static void run(unsigned now, All... all) {
    if (now == C)
      Sweep<Loop, C>::run(all...);
    else
      Choose<Loop, C - 1>::run(now, all...);
  }
};

template <template <unsigned, unsigned> class Loop> struct Choose<Loop, 0> {
  template <class... All> static void run(All...) {}
};

/// Runs Loop over the lists of all samples ([samples][room], of which `lengths` are used) for all columns, MOST pairs per sweep.
template <template <unsigned, unsigned> class Loop, unsigned MOST, class List, class Lengths, class Row, class Column>
__attribute__((noinline)) void sweep(const List *lists, unsigned room, Lengths lengths, unsigned samples, Row *rows, unsigned inputs,
                                     unsigned columns, Column *held) {
  Row *last = rows + static_cast<unsigned long>(inputs) * (columns / 2 * 2);
  unsigned done = 0;
  for (; columns - done > 2 * MOST; done += 2 * MOST)
    Sweep<Loop, 2 * MOST>::run(lists, room, lengths, samples, rows + done, last, columns, held + done);
  Choose<Loop, 2 * MOST>::run(columns - done, lists, room, lengths, samples, rows + done, last, columns, held + done);
}

/// Returns the number of events of all samples.
[[maybe_unused]] inline unsigned long total(const unsigned *numbers, unsigned samples) {
  unsigned long found = 0;
  for (unsigned s = 0; s < samples; ++s)
    found += numbers[s];
  return found;
}

/// sums[c] += rows[id][c] for every event.
template <unsigned P, unsigned LAST> struct AddRows {
  template <class Id>
  static void run(const Id *__restrict ids, unsigned events, const float *pair, const float *last, unsigned stride, float *sums) {
    Held<P, LAST> held(sums);
    for (unsigned e = 0; e < events; ++e) {
      const unsigned id = ids[e];
      const float2 *row = reinterpret_cast<const float2 *>(pair + static_cast<unsigned long>(id) * stride);
      for (unsigned p = 0; p < P; ++p)
        held.pair[p] += row[p];
      if (LAST != 0)
        held.last += last[id];
    }
    held.store(sums);
  }
};

/// rows[id][c] += delta[c] for every event.
template <unsigned P, unsigned LAST> struct AddToRows {
  template <class Id>
  static void run(const Id *__restrict ids, unsigned events, float *pair, float *last, unsigned stride, const float *delta) {
    const Held<P, LAST> held(delta);
    for (unsigned e = 0; e < events; ++e) {
      const unsigned id = ids[e];
      float2 *row = reinterpret_cast<float2 *>(pair + static_cast<unsigned long>(id) * stride);
      for (unsigned p = 0; p < P; ++p)
        row[p] += held.pair[p];
      if (LAST != 0)
        last[id] += held.last;
    }
  }
};

/// sums[c] += values[i] * rows[i][c].
template <unsigned P, unsigned LAST> struct AddProducts {
  static void run(const float *__restrict values, unsigned width, const float *pair, const float *last, unsigned stride, float *sums) {
    Held<P, LAST> held(sums);
    for (unsigned i = 0; i < width; ++i) {
      const float2 value = {values[i], values[i]};
      const float2 *row = reinterpret_cast<const float2 *>(pair + static_cast<unsigned long>(i) * stride);
      for (unsigned p = 0; p < P; ++p)
        held.pair[p] += value * row[p];
      if (LAST != 0)
        held.last += value[0] * last[i];
    }
    held.store(sums);
  }
};

/// rows[i][c] += values[i] * delta[c].
template <unsigned P, unsigned LAST> struct AddOuter {
  static void run(const float *__restrict values, unsigned width, float *pair, float *last, unsigned stride, const float *delta) {
    const Held<P, LAST> held(delta);
    for (unsigned i = 0; i < width; ++i) {
      const float2 value = {values[i], values[i]};
      float2 *row = reinterpret_cast<float2 *>(pair + static_cast<unsigned long>(i) * stride);
      for (unsigned p = 0; p < P; ++p)
        row[p] += value * held.pair[p];
      if (LAST != 0)
        last[i] += value[0] * held.last;
    }
  }
};

/// Calls use(i) for all rows except those of pairs whose values are both 0; returns the number of calls.
template <class Use> inline unsigned each_nonzero_row(const float *values, unsigned width, const Use &use) {
  unsigned used = 0;
  for (unsigned i = 0; i < width; i += 2) {
    const unsigned end = i + 1 < width ? i + 2 : width;
    if (values[i] == 0.0f && values[end - 1] == 0.0f)
      continue;
    for (unsigned row = i; row < end; ++row)
      use(row);
    used += end - i;
  }
  return used;
}

/// Returns the number of rows that each_nonzero_row visits, over all samples.
[[maybe_unused]] inline unsigned long nonzero_rows(const float *values, unsigned width, unsigned samples) {
  unsigned long found = 0;
  for (unsigned s = 0; s < samples; ++s)
    found += each_nonzero_row(values + static_cast<unsigned long>(s) * width, width, [](unsigned) {});
  return found;
}

/// AddProducts for values that are mostly 0.
template <unsigned P, unsigned LAST> struct AddNonzeroProducts {
  static void run(const float *__restrict values, unsigned width, const float *pair, const float *last, unsigned stride, float *sums) {
    Held<P, LAST> held(sums);
    each_nonzero_row(values, width, [&](unsigned i) {
      const float2 value = {values[i], values[i]};
      const float2 *row = reinterpret_cast<const float2 *>(pair + static_cast<unsigned long>(i) * stride);
      for (unsigned p = 0; p < P; ++p)
        held.pair[p] += value * row[p];
      if (LAST != 0)
        held.last += value[0] * last[i];
    });
    held.store(sums);
  }
};

/// AddOuter for values that are mostly 0.
template <unsigned P, unsigned LAST> struct AddNonzeroOuter {
  static void run(const float *__restrict values, unsigned width, float *pair, float *last, unsigned stride, const float *delta) {
    const Held<P, LAST> held(delta);
    each_nonzero_row(values, width, [&](unsigned i) {
      const float2 value = {values[i], values[i]};
      float2 *row = reinterpret_cast<float2 *>(pair + static_cast<unsigned long>(i) * stride);
      for (unsigned p = 0; p < P; ++p)
        row[p] += value * held.pair[p];
      if (LAST != 0)
        last[i] += value[0] * held.last;
    });
  }
};

/// Loads two samples, in one access if they are aligned.
template <bool ALIGNED> inline float2 two_samples(const float *row) {
  return ALIGNED ? *reinterpret_cast<const float2 *>(row) : float2{row[0], row[1]};
}
/// Pairs of half values are always aligned.
template <bool> inline float2 two_samples(const half *row) {
  const half2 pair = *reinterpret_cast<const half2 *>(row);
  return float2{static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}

/// sums[s * step] += rows[o][s] * weights[o] over all outputs, for 2 * P samples and one more if LAST is 1.
template <unsigned P, unsigned LAST, bool ALIGNED, class Delta, class Weight>
inline void add_some_samples(const Delta *__restrict rows, unsigned batch, const Weight *__restrict weights, unsigned outputs,
                             float *__restrict sums, unsigned step) {
  float2 held[P == 0 ? 1 : P] = {};
  float last = 0.0f;
  for (unsigned o = 0; o < outputs; ++o, rows += batch) {
    const float each = static_cast<float>(weights[o]);
    const float2 weight = {each, each};
    for (unsigned p = 0; p < P; ++p)
      held[p] += weight * two_samples<ALIGNED>(rows + 2 * p);
    if (LAST != 0)
      last += weight[0] * static_cast<float>(rows[2 * P]);
  }
  for (unsigned p = 0; p < P; ++p) {
    sums[2 * p * step] += held[p][0];
    sums[(2 * p + 1) * step] += held[p][1];
  }
  if (LAST != 0)
    sums[2 * P * step] += last;
}

/// add_some_samples for `now` samples, at most S.
template <unsigned S, bool ALIGNED> struct ChooseSamples {
  template <class... All> static void run(unsigned now, All... all) {
    if (now == S)
      add_some_samples<S / 2, S % 2, ALIGNED>(all...);
    else
      ChooseSamples<S - 1, ALIGNED>::run(now, all...);
  }
};

template <bool ALIGNED> struct ChooseSamples<0, ALIGNED> {
  template <class... All> static void run(All...) {}
};

/// add_some_samples for all samples, with SAMPLE_SWEEP pairs at a time in registers.
template <bool ALIGNED, class Delta, class Weight>
__attribute__((noinline)) void add_products_of_samples(const Delta *rows, unsigned batch, const Weight *weights, unsigned outputs,
                                                       float *sums, unsigned samples, unsigned step) {
  unsigned s = 0;
  for (; samples - s > 2 * SAMPLE_SWEEP; s += 2 * SAMPLE_SWEEP)
    add_some_samples<SAMPLE_SWEEP, 0, ALIGNED>(rows + s, batch, weights, outputs, sums + s * step, step);
  ChooseSamples<2 * SAMPLE_SWEEP, ALIGNED>::run(samples - s, rows + s, batch, weights, outputs, sums + s * step, step);
}

/// Loads two weights of a row; rows of half values begin at word boundaries.
template <bool ALIGNED> inline float2 two_weights(const float *row) { return two_samples<ALIGNED>(row); }
template <bool ALIGNED> inline float2 two_weights(const half *row) { return two_samples<ALIGNED>(row); }

/// sums[c] += sum of rows[o] * weights[c][o] over all outputs, for N columns: one sample, two outputs at a time. Rows of weights are
/// `stride` elements apart.
template <unsigned N, bool ALIGNED, class Delta, class Weight> inline void
add_dots(const Delta *__restrict rows, const Weight *__restrict weights, unsigned outputs, unsigned stride, float *__restrict sums) {
  float2 held[N] = {};
  for (unsigned o = 0; o + 1 < outputs; o += 2) {
    const float2 row = two_samples<true>(rows + o);
    for (unsigned c = 0; c < N; ++c)
      held[c] += row * two_weights<ALIGNED>(weights + c * stride + o);
  }
  for (unsigned c = 0; c < N; ++c)
    sums[c] += held[c][0] + held[c][1] +
               (outputs % 2 != 0 ? static_cast<float>(rows[outputs - 1]) * static_cast<float>(weights[c * stride + outputs - 1]) : 0.0f);
}

/// Adds the dot products of all columns of a block with one sample: four columns at a time share the loads of the deltas.
template <bool ALIGNED, class Delta, class Weight> __attribute__((noinline)) void
add_dots_of_columns(const Delta *rows, const Weight *weights, unsigned outputs, unsigned stride, float *sums, unsigned count) {
  unsigned c = 0;
  for (; c + 4 <= count; c += 4)
    add_dots<4, ALIGNED>(rows, weights + c * stride, outputs, stride, sums + c);
  for (; c + 2 <= count; c += 2)
    add_dots<2, ALIGNED>(rows, weights + c * stride, outputs, stride, sums + c);
  for (; c < count; ++c)
    add_dots<1, ALIGNED>(rows, weights + c * stride, outputs, stride, sums + c);
}

/// Returns the number of passes over the columns in add_dots_of_columns.
[[maybe_unused]] inline unsigned dot_sweeps(unsigned count) { return count / 4 + count % 4 / 2 + count % 2; }

} // namespace
