// Sums the partial sums of a gradient, in order.
#ifndef SNNC_WHOLE_SLICES_CUH
#define SNNC_WHOLE_SLICES_CUH

#include "gradients.hpp"
#include "whole_launch.hpp"

namespace snnc {

constexpr int GRADIENT_THREADS = 256, GRADIENT_WARPS = GRADIENT_THREADS / LANES;
/// Number of blocks that share the rows of a gradient; it is the same for every device, so that the order of sums is fixed.
constexpr int GRADIENT_BLOCKS = 264;

/// Sums partial sums in order: a block processes 32 elements, and each of its warps some of the slices.
static KERNEL_OF(GRADIENT_THREADS, 4) void add_slices_kernel(const float *partial, int slices, int numbers, WHOLE_GRID Slices weights,
                                                             WHOLE_GRID Slices biases) {
  float *room = reinterpret_cast<float *>(shared_memory());
  const int warp = thread_index() / LANES, lane = lane_index(), number = block_index() * LANES + lane,
            each = whole_parts(slices, GRADIENT_WARPS);
  float sum = 0;
  if (number < numbers) {
    const float *from = partial + number;
    UNROLL(8)
    for (int slice = warp * each; slice < least(slices, (warp + 1) * each); ++slice)
      sum += from[static_cast<std::size_t>(slice) * static_cast<std::size_t>(numbers)];
  }
  room[thread_index()] = sum;
  sync_block();
  if (warp > 0 || number >= numbers)
    return;
  for (int other = 1; other < GRADIENT_WARPS; ++other)
    sum += room[other * LANES + lane];
  const bool weight = number < weights.numbers;
  const Slices &to = weight ? weights : biases;
  for (int slice = 0; slice < to.count; ++slice)
    to.put(slice, static_cast<std::size_t>(weight ? number : number - weights.numbers), slice == 0 ? sum : 0.0f);
}

/// Launches add_slices_kernel; the sums are stored in the first slice of the weights, and those after them in the first slice of the biases.
inline void add_slices(const float *partial, int slices, int numbers, const Slices &weights, const Slices &biases) {
  launch_blocks(add_slices_kernel, (numbers + LANES - 1) / LANES, GRADIENT_THREADS, GRADIENT_THREADS * sizeof(float), partial, slices,
                numbers, weights, biases);
}

} // namespace snnc

#endif
