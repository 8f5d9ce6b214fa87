// Dense products over a whole sequence, on tensor cores: rows of spikes or numbers with weights, and gradients of weights.
//
// They do not depend on the network: sizes are run-time arguments. A row is a step of a sample. Functions launch kernels in the thread's stream.
#ifndef SNNC_WHOLE_PRODUCTS_HPP
#define SNNC_WHOLE_PRODUCTS_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace snnc {

struct BFloat16;
struct Slices;
template <class Half> struct Short;

/// Form of a product's factors on tensor cores. SPLIT: two or three parts, as exact as float32 forward, 1e-5 backward. ROUNDED: one 16-bit
/// value; forward float16 weights and spikes, backward bfloat16. HALF_WEIGHTS: weights rounded to float16, in two parts of 8 bits, because its
/// 11 bits do not fit in one; numbers forward also have two parts, deltas are bfloat16. TF32: as SPLIT, but weights of spikes are rounded to 11
/// bits, in one float16 value with a power of two per column.
enum class Factors { SPLIT, ROUNDED, HALF_WEIGHTS, TF32 };

/// The product for which weights are prepared.
enum class WholeUse { SPIKES, NUMBERS, BACK };

/// Weights of a dense connection, [inputs][outputs].
struct DenseWeights {
  const float *data;
  int inputs, outputs;
};

/// Weights in the order and parts in which a product reads them; `memory` has prepared_bytes(…) bytes and is 16-byte aligned.
struct PreparedWeights {
  WholeUse use;
  Factors factors;
  int inputs, outputs;
  void *memory;
};

std::size_t prepared_bytes(WholeUse use, Factors factors, int inputs, int outputs);
/// Weights and their copy in the order and parts of a product.
struct Preparation {
  PreparedWeights to;
  DenseWeights from;
};
/// Prepares weights, in one launch; to be called after each change.
void prepare_weights(std::initializer_list<Preparation> all);

/// Destination of sums: float32 rows. `start` (per column, or null) is added to each sum; `add`: also adds to the destination.
struct DenseSums {
  float *data;
  const float *start;
  bool add;
};

/// Returns whether warpgroups are used on the thread's device (sm_90, if a trial gave the same results as single warps).
bool products_by_groups();

/// sums[row][output] = sum over inputs of source[row][input] * weights[input][output]. A row of spikes has whole words.
void whole_forward(const std::uint32_t *spikes, int rows, const PreparedWeights &weights, const DenseSums &sums);
void whole_forward(const float *numbers, int rows, const PreparedWeights &weights, const DenseSums &sums);

/// sums[row][input] = sum over outputs of deltas[row + shift][output] * weights[input][output]; rows from `limit` on count as 0.
void whole_back(const float *deltas, int rows, int shift, int limit, const PreparedWeights &weights, const DenseSums &sums);
/// As above, for 16-bit rows, which are padded to an even length.
void whole_back(const Short<BFloat16> *deltas, int rows, int shift, int limit, const PreparedWeights &weights, const DenseSums &sums);

/// Returns the rows per slice of a gradient; it is the same on all devices.
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
