// ---- rows of columns stored as half: like rows of floats, with 32-bit loads of pairs; sums are floats -----------------------------

namespace {

/// Converts two half values to floats.
[[maybe_unused]] inline float2 widened(half2 pair) { return float2{static_cast<float>(pair[0]), static_cast<float>(pair[1])}; }

/// Returns the length of a row in a copy that is stored with its source.
[[maybe_unused]] inline unsigned even(unsigned columns) { return columns + columns % 2; }

/// sums[c] += value * rows[i][c] for one row.
template <unsigned P, unsigned LAST>
inline void add_half_row(Held<P, LAST> &held, float value, const half *pair, const half *last, unsigned stride, unsigned i) {
  const half2 *row = reinterpret_cast<const half2 *>(pair + static_cast<unsigned long>(i) * stride);
  for (unsigned p = 0; p < P; ++p)
    held.pair[p] += float2{value, value} * widened(row[p]);
  if (LAST != 0)
    held.last += value * static_cast<float>(last[i]);
}

/// AddRows for half values.
template <unsigned P, unsigned LAST> struct AddHalfRows {
  template <class Id>
  static void run(const Id *__restrict ids, unsigned events, const half *pair, const half *last, unsigned stride, float *sums) {
    Held<P, LAST> held(sums);
    for (unsigned e = 0; e < events; ++e) {
      const unsigned id = ids[e];
      const half2 *row = reinterpret_cast<const half2 *>(pair + static_cast<unsigned long>(id) * stride);
      for (unsigned p = 0; p < P; ++p)
        held.pair[p] += widened(row[p]);
      if (LAST != 0)
        held.last += static_cast<float>(last[id]);
    }
    held.store(sums);
  }
};

/// AddProducts for half values.
template <unsigned P, unsigned LAST> struct AddHalfProducts {
  static void run(const float *__restrict values, unsigned width, const half *pair, const half *last, unsigned stride, float *sums) {
    Held<P, LAST> held(sums);
    for (unsigned i = 0; i < width; ++i)
      add_half_row(held, values[i], pair, last, stride, i);
    held.store(sums);
  }
};

/// AddNonzeroProducts for half values.
template <unsigned P, unsigned LAST> struct AddNonzeroHalfProducts {
  static void run(const float *__restrict values, unsigned width, const half *pair, const half *last, unsigned stride, float *sums) {
    Held<P, LAST> held(sums);
    each_nonzero_row(values, width, [&](unsigned i) { add_half_row(held, values[i], pair, last, stride, i); });
    held.store(sums);
  }
};

} // namespace
