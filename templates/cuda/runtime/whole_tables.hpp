// Connections given by tables, over all rows of a segment at once: what a network starts. Sizes are those of the moment.
#ifndef SNNC_WHOLE_TABLES_HPP
#define SNNC_WHOLE_TABLES_HPP

#include "whole_rows.hpp"
#include "wiring.hpp"

namespace snnc {

/// A connection's ends: numbers of a row of its source and of its target.
struct Ends {
  int sources, targets;
};

/// to[r][n] = sum over the entries (source, weight) of target n of weights[weight] * from[lead + r][source], and bias[bias_of[n]] where there is one.
void gather_wired(const Ends &ends, const Wires &by_target, const WholeRows &from, const float *weights, const std::uint32_t *bias_of,
                  const WholeSums &to);

/// to[r][i] = sum over the entries (target, weight) of source i of weights[weight] * deltas[r + shift][target]; rows from `limit` on count as 0.
void gather_wired_back(const Ends &ends, const Wires &by_source, const float *deltas, int shift, int limit, const float *weights,
                       const WholeSums &to);

/// to[r][n] = the largest of from[lead + r] at the entries of target n, which are one number each.
void gather_largest(const Ends &ends, const Wires &by_target, const WholeRows &from, const WholeSums &to);

/// to[r][i] = sum of deltas[r + shift] over the targets that chose source i: the first of their largest values in from[lead + r].
void gather_largest_back(const Ends &ends, const Wires &by_target, const Wires &by_source, const WholeRows &from, const float *deltas,
                         int shift, int limit, const WholeSums &to);

/// The same where no source is in two windows; sources in none are left as they are.
void spread_largest(const Ends &ends, const Wires &by_target, const WholeRows &from, const float *deltas, int shift, int limit,
                    const WholeSums &to);

/// Numbers of 4 bytes that wired_gradients needs for its own use.
std::size_t wired_scratch(int weights, int rows);

/// gradient[k] = sum over the rows and the entries (source, target) of weight k of from[lead + r][source] * deltas[r][target], in the first slice;
/// `few`: a weight has few entries. A source without data is one of ones.
void wired_gradients(const Ends &ends, const Wires &by_weight, bool few, const WholeRows &from, const float *deltas, int rows,
                     const Slices &to, float *scratch);

} // namespace snnc

#endif
