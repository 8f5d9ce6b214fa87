// Launches of dense products over a whole sequence: the kernel for given sizes, with single warps or warpgroups.
#ifndef SNNC_WHOLE_STARTS_CUH
#define SNNC_WHOLE_STARTS_CUH

#include "whole_products.hpp"

#include "constants.hpp"
#include "launch.hpp"
#include "whole_gradients.cuh"
#include "whole_rows.cuh"
#include "whole_warpgroups.cuh"

namespace snnc {

/// Whether single warps (mma.sync) multiply, or warpgroups of four warps (wgmma) if a result has enough columns.
enum class By { WARPS, GROUPS };

constexpr int WIDE = TILE_COLUMNS, NARROW = FEW_COLUMNS;
/// Fragments of spikes are cheap, so a warp processes more rows and reads fewer weights.
using WideSpikes = Shares<4, WIDE>;
using WideNumbers = Shares<2, WIDE>;
using Narrow = Shares<2, NARROW>;

inline int pieces(int count, int each) { return (count + each - 1) / each; }

inline int parts_of(WholeUse use, Factors factors) {
  if (factors == Factors::ROUNDED || (use == WholeUse::SPIKES && factors == Factors::TF32))
    return 1;
  return use == WholeUse::NUMBERS && factors != Factors::HALF_WEIGHTS ? 3 : 2;
}

inline int outputs_of(const PreparedWeights &weights) { return weights.use == WholeUse::BACK ? weights.inputs : weights.outputs; }
inline int depths_of(const PreparedWeights &weights) { return weights.use == WholeUse::BACK ? weights.outputs : weights.inputs; }

/// Returns the steps of all depths, a multiple of the turns of warpgroups.
inline int steps_of(const PreparedWeights &of) {
  const int each = turn_steps(of.use == WholeUse::SPIKES);
  return pieces(depths_of(of), each * STEP_DEPTH) * each;
}

inline std::size_t plane_bytes(const PreparedWeights &of) {
  return static_cast<std::size_t>(pieces(outputs_of(of), STRIP)) * static_cast<std::size_t>(steps_of(of)) *
         static_cast<std::size_t>(parts_of(of.use, of.factors)) * PLANE_BYTES;
}

inline float *scales_of(const PreparedWeights &of) {
  return of.use == WholeUse::SPIKES ? reinterpret_cast<float *>(static_cast<char *>(of.memory) + plane_bytes(of)) : nullptr;
}

template <class Number> NumberRows<Number> number_rows(const Number *data, int columns, int stride, long long first, long long last) {
  const bool aligned = stride % 4 == 0 && columns % 4 == 0 && reinterpret_cast<std::uintptr_t>(data) % (4 * sizeof(Number)) == 0;
  return {data, columns, stride, first, last, aligned};
}

template <class Left, int RIGHT, class Share, int COLUMNS>
void start_rows(const typename Left::Rows &rows, const PreparedWeights &weights, const RowResults &results) {
  const TileOrder order{static_cast<int>((results.rows + TILE_ROWS - 1) / TILE_ROWS), pieces(results.outputs, COLUMNS)};
  if (order.down > 0)
    launch_blocks(multiply_rows<Left, RIGHT, Share, COLUMNS>, order.down * order.across, PRODUCT_THREADS, row_shared(RIGHT, COLUMNS), rows,
                  static_cast<const char *>(weights.memory), steps_of(weights), results, order);
}

template <class Left, int RIGHT>
void start_rows_by_groups(const typename Left::Rows &rows, const PreparedWeights &weights, const RowResults &results) {
  const TileOrder order{static_cast<int>((results.rows + TILE_ROWS - 1) / TILE_ROWS), pieces(results.outputs, GROUP_COLUMNS)};
  if (order.down > 0)
    launch_blocks(multiply_rows_by_groups<Left, RIGHT>, order.down * order.across, PRODUCT_THREADS, group_row_shared(RIGHT, Left::EXACT),
                  rows, static_cast<const char *>(weights.memory), steps_of(weights) / turn_steps(Left::EXACT), results, order);
}

template <class Number, int LEFT, int RIGHT>
void start_numbers(const NumberRows<Number> &rows, const PreparedWeights &weights, const RowResults &results, By by) {
  if (results.outputs <= NARROW)
    start_rows<NumberFragments<Number, LEFT, Narrow::DOWN>, RIGHT, Narrow, NARROW>(rows, weights, results);
  else if (by == By::GROUPS)
    start_rows_by_groups<NumberFragments<Number, LEFT, GroupShare::DOWN>, RIGHT>(rows, weights, results);
  else
    start_rows<NumberFragments<Number, LEFT, WideNumbers::DOWN>, RIGHT, WideNumbers, WIDE>(rows, weights, results);
}

template <int RIGHT> void start_spikes(const SpikeRows &rows, const PreparedWeights &weights, const RowResults &results, By by) {
  if (results.outputs <= NARROW)
    start_rows<SpikeFragments<Narrow::DOWN>, RIGHT, Narrow, NARROW>(rows, weights, results);
  else if (by == By::GROUPS)
    start_rows_by_groups<SpikeFragments<GroupShare::DOWN>, RIGHT>(rows, weights, results);
  else
    start_rows<SpikeFragments<WideSpikes::DOWN>, RIGHT, WideSpikes, WIDE>(rows, weights, results);
}

inline RowResults results_of(const PreparedWeights &weights, int rows, const DenseSums &sums) {
  return {sums.data, scales_of(weights), sums.start, rows, outputs_of(weights), sums.add};
}

template <class Left, class Number, int RIGHT, class Share, int COLUMNS>
void start_turned(const typename Left::Rows &source, const NumberRows<Number> &deltas, int rows, int inputs, const Slices &to) {
  const int tiles = pieces(inputs, TILE_ROWS) * pieces(deltas.columns, COLUMNS);
  launch_blocks(multiply_turned<Left, Number, RIGHT, Share, COLUMNS>, tiles * to.count, PRODUCT_THREADS,
                gradient_shared(Left::SHARED, RIGHT, COLUMNS), source, deltas, inputs, deltas.columns, rows, to);
}

template <class Number, int RIGHT>
void start_turned_by_groups(const SpikeRows &source, const NumberRows<Number> &deltas, int rows, int inputs, const Slices &to) {
  const int tiles = pieces(inputs, TILE_ROWS) * pieces(deltas.columns, GROUP_COLUMNS);
  launch_blocks(multiply_turned_by_groups<Number, RIGHT>, tiles * to.count, PRODUCT_THREADS, group_gradient_shared(RIGHT), source, deltas,
                inputs, deltas.columns, rows, to);
}

template <class Number, int RIGHT>
void start_gradient(const SpikeRows &source, const NumberRows<Number> &deltas, int rows, int inputs, const Slices &to, By by) {
  if (deltas.columns <= NARROW)
    start_turned<SpikesTurned<Narrow>, Number, RIGHT, Narrow, NARROW>(source, deltas, rows, inputs, to);
  else if (by == By::GROUPS)
    start_turned_by_groups<Number, RIGHT>(source, deltas, rows, inputs, to);
  else
    start_turned<SpikesTurned<WideSpikes>, Number, RIGHT, WideSpikes, WIDE>(source, deltas, rows, inputs, to);
}

template <class Number, int LEFT, int RIGHT>
void start_gradient(const NumberRows<float> &source, const NumberRows<Number> &deltas, int rows, int inputs, const Slices &to, By) {
  // On sm_75, the parts of both factors do not fit in a block's shared memory for wide tiles.
  if (deltas.columns <= NARROW || most_shared() < gradient_shared(NumbersTurned<WideNumbers, LEFT>::SHARED, RIGHT, WIDE))
    start_turned<NumbersTurned<Narrow, LEFT>, Number, RIGHT, Narrow, NARROW>(source, deltas, rows, inputs, to);
  else
    start_turned<NumbersTurned<WideNumbers, LEFT>, Number, RIGHT, WideNumbers, WIDE>(source, deltas, rows, inputs, to);
}

/// The products of whole_products.hpp, with a given kind of kernel.
inline void forward(const std::uint32_t *spikes, int rows, const PreparedWeights &weights, const DenseSums &sums, By by) {
  const SpikeRows source{spikes, pieces(weights.inputs, 32), rows};
  if (parts_of(weights.use, weights.factors) == 1)
    start_spikes<1>(source, weights, results_of(weights, rows, sums), by);
  else
    start_spikes<2>(source, weights, results_of(weights, rows, sums), by);
}

inline void forward(const float *numbers, int rows, const PreparedWeights &weights, const DenseSums &sums, By by) {
  const NumberRows<float> source = number_rows(numbers, weights.inputs, weights.inputs, 0, rows);
  if (weights.factors == Factors::HALF_WEIGHTS)
    start_numbers<float, 2, 2>(source, weights, results_of(weights, rows, sums), by);
  else
    start_numbers<float, 3, 3>(source, weights, results_of(weights, rows, sums), by);
}

inline void back(const float *deltas, int rows, int shift, int limit, const PreparedWeights &weights, const DenseSums &sums, By by) {
  const NumberRows<float> source =
      number_rows(deltas + static_cast<long long>(shift) * weights.outputs, weights.outputs, weights.outputs, -shift, limit - shift);
  if (weights.factors == Factors::ROUNDED)
    start_numbers<float, 1, 1>(source, weights, results_of(weights, rows, sums), by);
  else
    start_numbers<float, 2, 2>(source, weights, results_of(weights, rows, sums), by);
}

inline void back(const Short<BFloat16> *deltas, int rows, int shift, int limit, const PreparedWeights &weights, const DenseSums &sums,
                 By by) {
  const int stride = (weights.outputs + 1) / 2 * 2;
  const NumberRows<Short<BFloat16>> source =
      number_rows(deltas + static_cast<long long>(shift) * stride, weights.outputs, stride, -shift, limit - shift);
  if (weights.factors == Factors::ROUNDED)
    start_numbers<Short<BFloat16>, 1, 1>(source, weights, results_of(weights, rows, sums), by);
  else
    start_numbers<Short<BFloat16>, 1, 2>(source, weights, results_of(weights, rows, sums), by);
}

inline void gradient(const std::uint32_t *spikes, const float *deltas, int rows, int inputs, int outputs, Factors factors, const Slices &to,
                     By by) {
  const SpikeRows source{spikes, pieces(inputs, 32), rows};
  const NumberRows<float> right = number_rows(deltas, outputs, outputs, 0, rows);
  if (factors == Factors::ROUNDED)
    start_gradient<float, 1>(source, right, rows, inputs, to, by);
  else
    start_gradient<float, 2>(source, right, rows, inputs, to, by);
}

inline void gradient(const std::uint32_t *spikes, const Short<BFloat16> *deltas, int rows, int inputs, int outputs, Factors,
                     const Slices &to, By by) {
  start_gradient<Short<BFloat16>, 1>(SpikeRows{spikes, pieces(inputs, 32), rows},
                                     number_rows(deltas, outputs, (outputs + 1) / 2 * 2, 0, rows), rows, inputs, to, by);
}

inline void gradient(const float *numbers, const float *deltas, int rows, int inputs, int outputs, Factors factors, const Slices &to,
                     By by) {
  const NumberRows<float> source = number_rows(numbers, inputs, inputs, 0, rows), right = number_rows(deltas, outputs, outputs, 0, rows);
  if (factors == Factors::ROUNDED)
    start_gradient<float, 1, 1>(source, right, rows, inputs, to, by);
  else
    start_gradient<float, 2, 2>(source, right, rows, inputs, to, by);
}

inline void gradient(const float *numbers, const Short<BFloat16> *deltas, int rows, int inputs, int outputs, Factors factors,
                     const Slices &to, By by) {
  const NumberRows<float> source = number_rows(numbers, inputs, inputs, 0, rows);
  const NumberRows<Short<BFloat16>> right = number_rows(deltas, outputs, (outputs + 1) / 2 * 2, 0, rows);
  if (factors == Factors::ROUNDED)
    start_gradient<Short<BFloat16>, 1, 1>(source, right, rows, inputs, to, by);
  else
    start_gradient<Short<BFloat16>, 2, 1>(source, right, rows, inputs, to, by);
}

} // namespace snnc

#endif
