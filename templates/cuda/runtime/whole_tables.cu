// Connections given by tables, over all rows of a segment at once. A thread computes a target in several rows, so that it reads an entry once
// for all of them; neighbouring threads compute neighbouring targets.
#include "whole_tables.hpp"

#include "whole_slices.cuh"

namespace snnc {
namespace {

constexpr int TABLE_THREADS = 256;
/// Rows per thread.
constexpr int TABLE_ROWS = 4;

/// The element of a row that a thread computes, and its rows.
struct Share {
  int number, row, rows;

  DEVICE Share(int numbers, int all) {
    const long long at = static_cast<long long>(block_index()) * TABLE_THREADS + thread_index();
    number = static_cast<int>(at % numbers);
    const long long first = at / numbers * TABLE_ROWS;
    row = static_cast<int>(first);
    rows = first < all ? least(TABLE_ROWS, all - row) : 0;
  }
};

/// Spikes or numbers of a thread's rows; missing rows are replaced by its first row.
struct BitTable {
  const std::uint32_t *words;
  int stride;
  DEVICE float at(int row, int i) const {
    return static_cast<float>(
        words[static_cast<std::size_t>(row) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(i / 32)] >> (i % 32) & 1u);
  }
  DEVICE BitRow flat(std::size_t row) const { return {words + row * static_cast<std::size_t>(stride)}; }
};
struct NumberTable {
  const float *numbers;
  int stride;
  DEVICE float at(int row, int i) const {
    return numbers[static_cast<std::size_t>(row) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(i)];
  }
  DEVICE const float *flat(std::size_t row) const { return numbers + row * static_cast<std::size_t>(stride); }
};

DEVICE void put_rows(const WholeSums &to, int numbers, const Share &own, const float (&sums)[TABLE_ROWS]) {
  UNROLL(TABLE_ROWS)
  for (int s = 0; s < TABLE_ROWS; ++s)
    if (s < own.rows) {
      float &place =
          to.data[static_cast<std::size_t>(own.row + s) * static_cast<std::size_t>(numbers) + static_cast<std::size_t>(own.number)];
      const float sum = sums[s] + (to.start != nullptr ? to.start[own.number] : 0.0f);
      place = to.add ? place + sum : sum;
    }
}

template <class Table> KERNEL_OF(TABLE_THREADS, 4)
void wired_kernel(int numbers, int limit, WHOLE_GRID Wires wires, WHOLE_GRID Table from, const float *weights, const std::uint32_t *bias_of,
                  WHOLE_GRID WholeSums to) {
  const Share own(numbers, to.rows);
  if (own.rows == 0)
    return;
  float sums[TABLE_ROWS] = {};
  for (int e = wires.first(own.number), last = wires.first(own.number + 1); e < last; ++e) {
    const int other = wires.one(e);
    const float weight = weights[wires.other(e)];
    UNROLL(TABLE_ROWS)
    for (int s = 0; s < TABLE_ROWS; ++s)
      if (s < own.rows && own.row + s < limit)
        sums[s] = fmaf(weight, from.at(own.row + s, other), sums[s]);
  }
  const float bias = bias_of != nullptr ? to.bias[bias_of[own.number]] : 0.0f;
  UNROLL(TABLE_ROWS)
  for (int s = 0; s < TABLE_ROWS; ++s)
    sums[s] += bias;
  put_rows(to, numbers, own, sums);
}

template <class Table> KERNEL_OF(TABLE_THREADS, 4)
void largest_kernel(int numbers, WHOLE_GRID Wires wires, WHOLE_GRID Table from, WHOLE_GRID WholeSums to) {
  const Share own(numbers, to.rows);
  if (own.rows == 0)
    return;
  float highest[TABLE_ROWS] = {};
  const int first = wires.first(own.number), last = wires.first(own.number + 1);
  for (int e = first; e < last; ++e) {
    const int other = static_cast<int>(wires.entries[e]);
    UNROLL(TABLE_ROWS)
    for (int s = 0; s < TABLE_ROWS; ++s)
      if (s < own.rows) {
        const float value = from.at(own.row + s, other);
        highest[s] = e == first || value > highest[s] ? value : highest[s];
      }
  }
  put_rows(to, numbers, own, highest);
}

/// Windows that share no source: a thread finds the maximum of a window, and writes its delta there and 0 to the other sources.
template <class Table> KERNEL_OF(TABLE_THREADS, 4)
void spread_kernel(int targets, int sources, int limit, WHOLE_GRID Wires by_target, WHOLE_GRID Table from, const float *deltas,
                   WHOLE_GRID WholeSums to) {
  const Share own(targets, to.rows);
  if (own.rows == 0)
    return;
  const int first = by_target.first(own.number), last = by_target.first(own.number + 1);
  float highest[TABLE_ROWS] = {}, delta[TABLE_ROWS] = {};
  int chosen[TABLE_ROWS] = {};
  UNROLL(TABLE_ROWS)
  for (int s = 0; s < TABLE_ROWS; ++s)
    if (s < own.rows && own.row + s < limit)
      delta[s] = deltas[static_cast<std::size_t>(own.row + s) * static_cast<std::size_t>(targets) + static_cast<std::size_t>(own.number)];
  for (int e = first; e < last; ++e) {
    const int other = static_cast<int>(by_target.entries[e]);
    UNROLL(TABLE_ROWS)
    for (int s = 0; s < TABLE_ROWS; ++s)
      if (s < own.rows) {
        const float value = from.at(own.row + s, other);
        if (e == first || value > highest[s]) {
          highest[s] = value;
          chosen[s] = other;
        }
      }
  }
  for (int e = first; e < last; ++e) {
    const int other = static_cast<int>(by_target.entries[e]);
    UNROLL(TABLE_ROWS)
    for (int s = 0; s < TABLE_ROWS; ++s)
      if (s < own.rows) {
        float &place = to.data[static_cast<std::size_t>(own.row + s) * static_cast<std::size_t>(sources) + static_cast<std::size_t>(other)];
        const float sum = other == chosen[s] ? delta[s] : 0.0f;
        place = to.add ? place + sum : sum;
      }
  }
}

template <class Table> KERNEL_OF(TABLE_THREADS, 4)
void chosen_kernel(int numbers, int targets, int limit, WHOLE_GRID Wires by_target, WHOLE_GRID Wires by_source, WHOLE_GRID Table from,
                   const float *deltas, WHOLE_GRID WholeSums to) {
  const Share own(numbers, to.rows);
  if (own.rows == 0)
    return;
  float sums[TABLE_ROWS] = {};
  for (int e = by_source.first(own.number), end = by_source.first(own.number + 1); e < end; ++e) {
    const int target = static_cast<int>(by_source.entries[e]), first = by_target.first(target), last = by_target.first(target + 1);
    float highest[TABLE_ROWS] = {};
    bool mine[TABLE_ROWS] = {};
    for (int k = first; k < last; ++k) {
      const int other = static_cast<int>(by_target.entries[k]);
      UNROLL(TABLE_ROWS)
      for (int s = 0; s < TABLE_ROWS; ++s)
        if (s < own.rows) {
          const float value = from.at(own.row + s, other);
          if (k == first || value > highest[s]) {
            highest[s] = value;
            mine[s] = other == own.number;
          }
        }
    }
    UNROLL(TABLE_ROWS)
    for (int s = 0; s < TABLE_ROWS; ++s)
      if (s < own.rows && mine[s] && own.row + s < limit)
        sums[s] += deltas[static_cast<std::size_t>(own.row + s) * static_cast<std::size_t>(targets) + static_cast<std::size_t>(target)];
  }
  put_rows(to, numbers, own, sums);
}

template <bool FEW, class Table> KERNEL_OF(GRADIENT_THREADS, 4)
void wired_gradient_kernel(WHOLE_GRID Wires wires, WHOLE_GRID Table from, WHOLE_GRID Matrix<float> deltas, int rows,
                           WHOLE_GRID Slices partial) {
  const int index = block_index() * GRADIENT_WARPS + thread_index() / LANES;
  wired_gradient<FEW>(wires, from, 0, deltas, rows, partial, Warp{lane_index(), index, grid_size() * GRADIENT_WARPS, nullptr, nullptr});
}

int parts(long long count, int part) { return static_cast<int>((count + part - 1) / part); }

/// Returns the number of blocks for all elements of all rows.
int table_blocks(int numbers, int rows) { return parts(static_cast<long long>(parts(rows, TABLE_ROWS)) * numbers, TABLE_THREADS); }

BitTable bits_of_rows(const WholeRows &from, int values) {
  const int stride = parts(values, 32);
  return {from.words + static_cast<std::size_t>(from.lead) * static_cast<std::size_t>(stride), stride};
}
NumberTable numbers_of_rows(const WholeRows &from, int values) {
  return {from.numbers + static_cast<std::size_t>(from.lead) * static_cast<std::size_t>(values), values};
}
NumberTable shifted(const float *deltas, int shift, int values) { return {deltas + static_cast<std::ptrdiff_t>(shift) * values, values}; }

template <class Table>
void start_gradients(const Wires &by_weight, bool few, const Table &from, const Matrix<float> &deltas, int rows, const Slices &partial) {
  const int warps = (few ? parts(partial.numbers, LANES) : partial.numbers) * partial.count, blocks = parts(warps, GRADIENT_WARPS);
  if (few)
    launch_blocks(wired_gradient_kernel<true, Table>, blocks, GRADIENT_THREADS, 0, by_weight, from, deltas, rows, partial);
  else
    launch_blocks(wired_gradient_kernel<false, Table>, blocks, GRADIENT_THREADS, 0, by_weight, from, deltas, rows, partial);
}

/// Returns the number of partial sums of a gradient.
int slices_of(int weights, int rows) {
  constexpr int ENOUGH = GRADIENT_BLOCKS * GRADIENT_WARPS;
  return std::max(1, std::min(rows, ENOUGH / std::max(1, parts(weights, LANES))));
}

} // namespace

void gather_wired(const Ends &ends, const Wires &by_target, const WholeRows &from, const float *weights, const std::uint32_t *bias_of,
                  const WholeSums &to) {
  if (to.rows == 0)
    return;
  const int blocks = table_blocks(ends.targets, to.rows);
  if (from.words != nullptr)
    launch_blocks(wired_kernel<BitTable>, blocks, TABLE_THREADS, 0, ends.targets, to.rows, by_target, bits_of_rows(from, ends.sources),
                  weights, bias_of, to);
  else
    launch_blocks(wired_kernel<NumberTable>, blocks, TABLE_THREADS, 0, ends.targets, to.rows, by_target,
                  numbers_of_rows(from, ends.sources), weights, bias_of, to);
}

void gather_wired_back(const Ends &ends, const Wires &by_source, const float *deltas, int shift, int limit, const float *weights,
                       const WholeSums &to) {
  if (to.rows == 0)
    return;
  const std::uint32_t *none = nullptr;
  launch_blocks(wired_kernel<NumberTable>, table_blocks(ends.sources, to.rows), TABLE_THREADS, 0, ends.sources, std::max(0, limit - shift),
                by_source, shifted(deltas, shift, ends.targets), weights, none, to);
}

void gather_largest(const Ends &ends, const Wires &by_target, const WholeRows &from, const WholeSums &to) {
  if (to.rows == 0)
    return;
  const int blocks = table_blocks(ends.targets, to.rows);
  if (from.words != nullptr)
    launch_blocks(largest_kernel<BitTable>, blocks, TABLE_THREADS, 0, ends.targets, by_target, bits_of_rows(from, ends.sources), to);
  else
    launch_blocks(largest_kernel<NumberTable>, blocks, TABLE_THREADS, 0, ends.targets, by_target, numbers_of_rows(from, ends.sources), to);
}

void gather_largest_back(const Ends &ends, const Wires &by_target, const Wires &by_source, const WholeRows &from, const float *deltas,
                         int shift, int limit, const WholeSums &to) {
  if (to.rows == 0)
    return;
  const int blocks = table_blocks(ends.sources, to.rows), own_limit = std::max(0, limit - shift);
  const float *own = shifted(deltas, shift, ends.targets).numbers;
  if (from.words != nullptr)
    launch_blocks(chosen_kernel<BitTable>, blocks, TABLE_THREADS, 0, ends.sources, ends.targets, own_limit, by_target, by_source,
                  bits_of_rows(from, ends.sources), own, to);
  else
    launch_blocks(chosen_kernel<NumberTable>, blocks, TABLE_THREADS, 0, ends.sources, ends.targets, own_limit, by_target, by_source,
                  numbers_of_rows(from, ends.sources), own, to);
}

void spread_largest(const Ends &ends, const Wires &by_target, const WholeRows &from, const float *deltas, int shift, int limit,
                    const WholeSums &to) {
  if (to.rows == 0)
    return;
  const int blocks = table_blocks(ends.targets, to.rows), own_limit = std::max(0, limit - shift);
  const float *own = shifted(deltas, shift, ends.targets).numbers;
  if (from.words != nullptr)
    launch_blocks(spread_kernel<BitTable>, blocks, TABLE_THREADS, 0, ends.targets, ends.sources, own_limit, by_target,
                  bits_of_rows(from, ends.sources), own, to);
  else
    launch_blocks(spread_kernel<NumberTable>, blocks, TABLE_THREADS, 0, ends.targets, ends.sources, own_limit, by_target,
                  numbers_of_rows(from, ends.sources), own, to);
}

std::size_t wired_scratch(int weights, int rows) {
  return static_cast<std::size_t>(slices_of(weights, rows)) * static_cast<std::size_t>(weights);
}

void wired_gradients(const Ends &ends, const Wires &by_weight, bool few, const WholeRows &from, const float *deltas, int rows,
                     const Slices &to, float *scratch) {
  if (rows == 0)
    return;
  const int length = parts(rows, slices_of(to.numbers, rows));
  const Slices partial{scratch, parts(rows, length), to.numbers, length, false};
  const Matrix<float> matrix{deltas, ends.targets};
  if (from.words != nullptr)
    start_gradients(by_weight, few, bits_of_rows(from, ends.sources), matrix, rows, partial);
  else if (from.numbers != nullptr)
    start_gradients(by_weight, few, numbers_of_rows(from, ends.sources), matrix, rows, partial);
  else
    start_gradients(by_weight, few, Ones(), matrix, rows, partial);
  add_slices(scratch, partial.count, to.numbers, to, to);
}

} // namespace snnc
