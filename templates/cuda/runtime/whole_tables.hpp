// Connections given by tables, over all rows of a segment at once. Sizes are run-time arguments.
#ifndef SNNC_WHOLE_TABLES_HPP
#define SNNC_WHOLE_TABLES_HPP

#include "whole_rows.hpp"
#include "wiring.hpp"

namespace snnc {

/// The ends of a connection: elements per row of its source and of its target.
struct Ends {
  int sources, targets;
};

/// to[r][n] = sum over the entries (source, weight) of target n of weights[weight] * from[lead + r][source], plus bias[bias_of[n]] if there are biases.
void gather_wired(const Ends &ends, const Wires &by_target, const WholeRows &from, const float *weights, const std::uint32_t *bias_of,
                  const WholeSums &to);

/// to[r][i] = sum over the entries (target, weight) of source i of weights[weight] * deltas[r + shift][target]; rows from `limit` on count as 0.
void gather_wired_back(const Ends &ends, const Wires &by_source, const float *deltas, int shift, int limit, const float *weights,
                       const WholeSums &to);

/// to[r][n] = the maximum of from[lead + r] at the entries of target n, which consist of a source only.
void gather_largest(const Ends &ends, const Wires &by_target, const WholeRows &from, const WholeSums &to);

/// to[r][i] = sum of deltas[r + shift] over the targets whose first maximum in from[lead + r] is source i.
void gather_largest_back(const Ends &ends, const Wires &by_target, const Wires &by_source, const WholeRows &from, const float *deltas,
                         int shift, int limit, const WholeSums &to);

/// Computes the sums of gather_largest_back if no source is in two windows; sources outside all windows are not changed.
void spread_largest(const Ends &ends, const Wires &by_target, const WholeRows &from, const float *deltas, int shift, int limit,
                    const WholeSums &to);

/// Returns the 4-byte elements of temporary memory for wired_gradients.
std::size_t wired_scratch(int weights, int rows);

/// gradient[k] = sum over the rows and the entries (source, target) of weight k of from[lead + r][source] * deltas[r][target], in the first slice;
/// `few`: every weight has few entries. A source without data consists of ones.
void wired_gradients(const Ends &ends, const Wires &by_weight, bool few, const WholeRows &from, const float *deltas, int rows,
                     const Slices &to, float *scratch);

} // namespace snnc

#endif
