// ---- gradients that return to only some neurons ------------------------------------------------------------------------------------

namespace {

/// A window of the backward pass has two counts per sample, of spikes and of all entries. This view returns the spikes.
struct Spikes {
  const unsigned *numbers;
  unsigned operator[](unsigned s) const { return numbers[2 * s]; }
};

[[maybe_unused]] inline unsigned long total(Spikes spikes, unsigned samples) {
  unsigned long found = 0;
  for (unsigned s = 0; s < samples; ++s)
    found += spikes[s];
  return found;
}

/// The view that returns all entries.
struct Entries {
  const unsigned *numbers;
  unsigned operator[](unsigned s) const { return numbers[2 * s + 1]; }
};

[[maybe_unused]] inline unsigned long entries_of(const unsigned *numbers, unsigned samples) { return total(Spikes{numbers + 1}, samples); }

/// Loads two columns of a row.
[[maybe_unused]] inline float2 two_columns(const float *row) { return *reinterpret_cast<const float2 *>(row); }
[[maybe_unused]] inline float2 two_columns(const half *row) {
  const half2 pair = *reinterpret_cast<const half2 *>(row);
  return float2{static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}

/// Rounds deltas to float16.
template <unsigned P, unsigned LAST> inline void round_to_half(Held<P, LAST> &held) {
  for (unsigned p = 0; p < P; ++p)
    held.pair[p] = float2{static_cast<float>(static_cast<half>(held.pair[p][0])), static_cast<float>(static_cast<half>(held.pair[p][1]))};
  if (LAST != 0)
    held.last = static_cast<float>(static_cast<half>(held.last));
}

/// partial[e] = sum over some columns of rows[id][c] * delta[c], added to the sum over the previous columns.
template <bool ROUNDS, unsigned P, unsigned LAST> struct MakeProducts {
  template <class Id, class Weight> static void run(const Id *__restrict ids, unsigned entries, const Weight *pair, const Weight *last,
                                                    unsigned stride, const float *delta, float *__restrict partial, bool starts) {
    Held<P, LAST> held(delta);
    if (ROUNDS)
      round_to_half(held);
    for (unsigned e = 0; e < entries; ++e) {
      const unsigned id = ids[e];
      const Weight *row = pair + static_cast<unsigned long>(id) * stride;
      float2 sum = {starts ? 0.0f : partial[e], 0.0f};
      for (unsigned p = 0; p < P; ++p)
        sum += two_columns(row + 2 * p) * held.pair[p];
      partial[e] = sum[0] + sum[1] + (LAST != 0 ? static_cast<float>(last[id]) * held.last : 0.0f);
    }
  }
};

/// MakeProducts for `now` columns, at most C.
template <bool ROUNDS, unsigned C> struct ChooseProducts {
  template <class... All> static void run(unsigned now, All... all) {
    if (now == C)
      MakeProducts<ROUNDS, C / 2, C % 2>::run(all...);
    else
      ChooseProducts<ROUNDS, C - 1>::run(now, all...);
  }
};

template <bool ROUNDS> struct ChooseProducts<ROUNDS, 0> {
  template <class... All> static void run(All...) {}
};

/// Computes the partial products of all entries of all samples, VALUE_SWEEP pairs of columns at a time.
template <bool ROUNDS, class Id, class Lengths, class Weight>
__attribute__((noinline)) void partial_products(const Id *ids, unsigned room, Lengths lengths, unsigned samples, const Weight *rows,
                                                unsigned inputs, unsigned columns, const float *deltas, float *partial, unsigned capacity) {
  const unsigned stride = columns / 2 * 2;
  const Weight *last = rows + static_cast<unsigned long>(inputs) * stride;
  for (unsigned done = 0; done < columns;) {
    const unsigned now = columns - done < 2 * VALUE_SWEEP ? columns - done : 2 * VALUE_SWEEP;
    for (unsigned s = 0; s < samples; ++s)
      ChooseProducts<ROUNDS, 2 * VALUE_SWEEP>::run(now, ids + s * room + begin_of(lengths, s), lengths[s], rows + done, last, stride,
                                                   deltas + s * columns + done, partial + s * capacity + begin_of(lengths, s), done == 0);
    done += now;
  }
}

/// Returns the number of steps of a binary search in n ascending ids.
[[maybe_unused]] inline unsigned halvings(unsigned n) { return n == 0 ? 0 : 32 - static_cast<unsigned>(__builtin_clz(n)); }

/// sums[id - first] += values[e] for the ids in [first, first + count) among n ascending ids; returns their number.
template <class Id> inline unsigned add_own(const Id *__restrict ids, const float *__restrict values, unsigned n, unsigned first,
                                            unsigned count, float *__restrict sums) {
  unsigned at = 0, left = n;
  while (left != 0) {
    const unsigned half = left / 2;
    const bool below = ids[at + half] < first;
    at = below ? at + half + 1 : at;
    left = below ? left - half - 1 : half;
  }
  unsigned own = 0;
  for (; at + own < n && ids[at + own] - first < count; ++own)
    sums[ids[at + own] - first] += values[at + own];
  return own;
}

} // namespace
