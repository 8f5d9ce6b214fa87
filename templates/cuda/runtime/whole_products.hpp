// Dense products over a whole sequence, on tensor cores: rows of spikes or numbers with weights, and gradients of weights.
//
// They know nothing of a network: sizes are given as they run, and a row is a step of a sample. What is called starts kernels in the thread's stream.
#ifndef SNNC_WHOLE_PRODUCTS_HPP
#define SNNC_WHOLE_PRODUCTS_HPP

#include <cstddef>
#include <cstdint>

namespace snnc {

struct BFloat16;
struct Slices;
template <class Half> struct Short;

/// What a product's factors become on tensor cores. SPLIT: two or three parts, as exact as float32 forward, 1e-5 back. ROUNDED: one number of 16 bits,
/// weights of float16 with spikes, bfloat16 back. HALF_WEIGHTS: weights rounded to float16, in two parts of 8 bits, as its 11 bits have no room in one;
/// numbers forward have two parts too, deltas are bfloat16.
enum class Factors { SPLIT, ROUNDED, HALF_WEIGHTS };

/// Which product weights are prepared for.
enum class WholeUse { SPIKES, NUMBERS, BACK };

/// Weights of a dense connection, [inputs][outputs].
struct DenseWeights {
  const float *data;
  int inputs, outputs;
};

/// Weights in the order and the parts in which a product reads them: `memory` has as many bytes as prepared_bytes says, and begins at a multiple of 16.
struct PreparedWeights {
  WholeUse use;
  Factors factors;
  int inputs, outputs;
  void *memory;
};

std::size_t prepared_bytes(WholeUse use, Factors factors, int inputs, int outputs);
/// After each change of the weights.
void prepare_weights(const PreparedWeights &to, const DenseWeights &weights);

/// Where sums go: rows of float32, each sum on top of its start (one for each column, or null); `add`: on top of what is there too.
struct DenseSums {
  float *data;
  const float *start;
  bool add;
};

/// Whether groups of four warps multiply on the thread's device (sm_90, where a trial gave what single warps give).
bool products_by_groups();

/// sums[row][output] = sum over inputs of source[row][input] * weights[input][output]. A row of spikes has whole words.
void whole_forward(const std::uint32_t *spikes, int rows, const PreparedWeights &weights, const DenseSums &sums);
void whole_forward(const float *numbers, int rows, const PreparedWeights &weights, const DenseSums &sums);

/// sums[row][input] = sum over outputs of deltas[row + shift][output] * weights[input][output]; rows from `limit` on count as 0.
void whole_back(const float *deltas, int rows, int shift, int limit, const PreparedWeights &weights, const DenseSums &sums);
/// Rows of 16 bits have an even number of places.
void whole_back(const Short<BFloat16> *deltas, int rows, int shift, int limit, const PreparedWeights &weights, const DenseSums &sums);

/// Rows of a slice of a gradient's sum: the same on any device.
int whole_slice_rows(int rows, int inputs, int outputs);

/// gradient[input][output] = sum over rows of source[row][input] * deltas[row][output].
void whole_gradient(const std::uint32_t *spikes, const float *deltas, int rows, int inputs, int outputs, Factors factors, const Slices &to);
void whole_gradient(const std::uint32_t *spikes, const Short<BFloat16> *deltas, int rows, int inputs, int outputs, Factors factors,
                    const Slices &to);
void whole_gradient(const float *numbers, const float *deltas, int rows, int inputs, int outputs, Factors factors, const Slices &to);
void whole_gradient(const float *numbers, const Short<BFloat16> *deltas, int rows, int inputs, int outputs, Factors factors,
                    const Slices &to);

} // namespace snnc

#endif
