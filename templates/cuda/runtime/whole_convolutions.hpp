// Convolutions of all rows of a segment at once. Sizes are run-time arguments, so one object file serves every network.
#ifndef SNNC_WHOLE_CONVOLUTIONS_HPP
#define SNNC_WHOLE_CONVOLUTIONS_HPP

#include "convolution.hpp"
#include "whole_rows.hpp"

namespace snnc {

/// Returns the 4-byte elements of temporary memory (16-byte aligned) for a call with `rows` rows; successive calls may share them.
std::size_t convolution_scratch(const Windows &windows, int rows);

/// to[r] = convolution of from[lead + r] with the weights [out][in / groups][kernel].
void convolve(const Windows &windows, const WholeRows &from, const float *weights, const WholeSums &to, float *scratch);

/// to[r] = gradient of the source, row r, from deltas[r + shift]; rows of deltas from `limit` on count as 0.
void convolve_back(const Windows &windows, const float *deltas, int shift, int limit, const float *weights, const WholeSums &to,
                   float *scratch);

/// Computes the gradients of the weights and, if `biases` has data, of the biases, from all rows of deltas. Sums are stored in the first slice.
void convolve_gradient(const Windows &windows, const WholeRows &from, const float *deltas, int rows, const Slices &weights,
                       const Slices &biases, float *scratch);

/// Computes only the gradients of the biases.
void convolve_bias_gradient(const Windows &windows, const float *deltas, int rows, const Slices &biases, float *scratch);

} // namespace snnc

#endif
