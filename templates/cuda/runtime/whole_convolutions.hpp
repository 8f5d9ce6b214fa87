// Convolutions of all rows of a segment at once: what a network starts. Sizes are those of the moment: one object serves every network.
#ifndef SNNC_WHOLE_CONVOLUTIONS_HPP
#define SNNC_WHOLE_CONVOLUTIONS_HPP

#include "convolution.hpp"
#include "whole_rows.hpp"

namespace snnc {

/// Numbers of 4 bytes that a call for so many rows needs for its own use; calls that follow each other may share them. 16-byte aligned.
std::size_t convolution_scratch(const Windows &windows, int rows);

/// to[r] = what windows read of from[lead + r], times the weights [out][in / groups][kernel].
void convolve(const Windows &windows, const WholeRows &from, const float *weights, const WholeSums &to, float *scratch);

/// to[r] = what comes back to the source of row r from deltas[r + shift]; rows of deltas from `limit` on count as 0.
void convolve_back(const Windows &windows, const float *deltas, int shift, int limit, const float *weights, const WholeSums &to,
                   float *scratch);

/// Gradients of the weights, and of the biases where they have data, from all rows of deltas. Sums go to the first slice of each.
void convolve_gradient(const Windows &windows, const WholeRows &from, const float *deltas, int rows, const Slices &weights,
                       const Slices &biases, float *scratch);

/// Of the biases alone.
void convolve_bias_gradient(const Windows &windows, const float *deltas, int rows, const Slices &biases, float *scratch);

} // namespace snnc

#endif
