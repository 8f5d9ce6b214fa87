// ---- runs of connections that are not dense ------------------------------------------------------------------------------------

namespace {

/// The runs of row r are [rows[r], rows[r + 1]); each connects consecutive values from `place` on with weights from `start` on.
/// If every run connects one value, there are no lengths.
template <class Number> struct RunTable {
  const Number *rows, *place, *start, *length;
};

/// Trip counts: steps of binary searches, events and keys that were read, rows, runs, values of runs, values times samples.
struct Trips {
  unsigned long searches = 0, lookups = 0, found = 0, runs = 0, values = 0, products = 0;
};

/// Calls join(place, start) for every value of every run of a row.
template <bool SINGLE, class Number, class Join>
inline void each_value(const RunTable<Number> &table, unsigned row, Trips &trips, const Join &join) {
  const unsigned end = table.rows[row + 1];
  ++trips.found;
  for (unsigned r = table.rows[row]; r < end; ++r) {
    const unsigned place = table.place[r], start = table.start[r], length = SINGLE ? 1u : table.length[r];
    for (unsigned i = 0; i < length; ++i)
      join(place + i, start + i);
    ++trips.runs;
    trips.values += length;
  }
}

/// The lowest float.
[[maybe_unused]] constexpr float LOWEST = -3.402823466e+38f;

/// Keeps the smallest entry, counted from 1; 0: none yet.
[[maybe_unused]] inline void choose_first(float &chosen, unsigned entry) {
  const float number = static_cast<float>(entry + 1);
  if (chosen == 0.0f || number < chosen)
    chosen = number;
}

/// Returns the index of the first of the ascending ids that is at least `low`.
template <class Id> [[maybe_unused]] inline unsigned first_from(const Id *ids, unsigned events, unsigned low, Trips &trips) {
  unsigned first = 0;
  for (unsigned left = low > 0 ? events : 0; left > 0; ++trips.searches) {
    const unsigned half = left / 2;
    const bool below = ids[first + half] < low;
    first += below ? half + 1 : 0;
    left = below ? left - half - 1 : half;
  }
  return first;
}

/// Calls use(row) for the row of each event, if it has one; rows are consecutive from `low` on.
template <class Id, class Use>
[[maybe_unused]] inline void each_event(const Id *ids, unsigned events, unsigned low, unsigned span, Trips &trips, const Use &use) {
  for (unsigned e = first_from(ids, events, low, trips); e < events; ++e) {
    ++trips.lookups;
    const unsigned row = ids[e] - low;
    if (row >= span)
      break;
    use(row);
  }
}

/// Calls use(row) for the row whose key is the id of an event; both events and keys ascend.
template <class Id, class Number, class Use>
[[maybe_unused]] inline void each_event(const Id *ids, unsigned events, const Number *keys, unsigned span, Trips &trips, const Use &use) {
  unsigned row = 0, e = span > 0 ? first_from(ids, events, keys[0], trips) : events;
  const unsigned first = e;
  for (; e < events && row < span; ++e) {
    while (row < span && keys[row] < ids[e])
      ++row;
    if (row < span && keys[row] == ids[e])
      use(row);
  }
  trips.lookups += e - first + row;
}

/// Calls use(row, value) for all rows.
template <class Use>
[[maybe_unused]] inline void each_value_of(const float *values, unsigned low, unsigned span, Trips &trips, const Use &use) {
  for (unsigned row = 0; row < span; ++row)
    use(row, values[low + row]);
  trips.lookups += span;
}

template <class Number, class Use>
[[maybe_unused]] inline void each_value_of(const float *values, const Number *keys, unsigned span, Trips &trips, const Use &use) {
  for (unsigned row = 0; row < span; ++row)
    use(row, values[keys[row]]);
  trips.lookups += span;
}

/// sums[place] += value * weights[start]; weights are float or half.
template <bool SINGLE, class Number, class Weight>
inline void add_runs(const RunTable<Number> &table, unsigned row, float value, const Weight *weights, float *sums, Trips &trips) {
  each_value<SINGLE>(table, row, trips, [&](unsigned place, unsigned start) { sums[place] += value * static_cast<float>(weights[start]); });
}

/// sums[place] += biases[start - weights]: the indices of biases begin at `weights`.
template <bool SINGLE, class Number> [[maybe_unused]] inline void
add_biases(const RunTable<Number> &table, unsigned row, const float *biases, unsigned weights, float *sums, Trips &trips) {
  each_value<SINGLE>(table, row, trips, [&](unsigned place, unsigned start) { sums[place] += biases[start - weights]; });
}

/// gradients[start] += value * delta[place].
template <bool SINGLE, class Number>
inline void add_to_runs(const RunTable<Number> &table, unsigned row, float value, const float *delta, float *gradients, Trips &trips) {
  each_value<SINGLE>(table, row, trips, [&](unsigned place, unsigned start) { gradients[start] += value * delta[place]; });
}

/// sums[s * stride] += deltas[place][s] * weights[start] over all runs of a row, N samples at a time in registers.
template <unsigned N, bool SINGLE, class Number, class Weight>
inline void add_runs_of_some_samples(const RunTable<Number> &table, unsigned row, const float *deltas, unsigned batch,
                                     const Weight *weights, float *sums, unsigned stride, Trips &trips) {
  float held[N] = {};
  const unsigned long before = trips.values;
  each_value<SINGLE>(table, row, trips, [&](unsigned place, unsigned start) {
    const float weight = static_cast<float>(weights[start]);
    const float *delta = deltas + static_cast<unsigned long>(place) * batch;
    for (unsigned s = 0; s < N; ++s)
      held[s] += weight * delta[s];
  });
  for (unsigned s = 0; s < N; ++s)
    sums[s * stride] += held[s];
  trips.products += N * (trips.values - before);
}

template <bool SINGLE, class Number, class Weight>
[[maybe_unused]] inline void add_runs_of_samples(const RunTable<Number> &table, unsigned row, const float *deltas, unsigned batch,
                                                 const Weight *weights, float *sums, unsigned samples, unsigned stride, Trips &trips) {
  unsigned s = 0;
  for (; s + 8 <= samples; s += 8)
    add_runs_of_some_samples<8, SINGLE>(table, row, deltas + s, batch, weights, sums + s * stride, stride, trips);
  for (; s + 2 <= samples; s += 2)
    add_runs_of_some_samples<2, SINGLE>(table, row, deltas + s, batch, weights, sums + s * stride, stride, trips);
  for (; s < samples; ++s)
    add_runs_of_some_samples<1, SINGLE>(table, row, deltas + s, batch, weights, sums + s * stride, stride, trips);
}

} // namespace
