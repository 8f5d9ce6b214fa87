// The launch of a walk (walk.cuh).
#ifndef SNNC_WALK_HPP
#define SNNC_WALK_HPP

#include "launch.hpp"
#include "teams.hpp"

#include <algorithm>

namespace snnc {

/// Threads per block of a walk; small blocks spread over all multiprocessors.
constexpr int WALKING_THREADS = 128;

/// Launches a walk with one warp per 32 neurons of a sample.
template <class Net>
void launch_walk(void (*kernel)(WHOLE_GRID Net, WHOLE_GRID Run), int neurons, int batch, const Net &net, const Run &run) {
  const int threads = std::min(WALKING_THREADS, threads_of_block()), each = threads / LANES;
  const long long warps = static_cast<long long>(batch) * ((neurons + LANES - 1) / LANES);
  launch_blocks(kernel, most_blocks((warps + each - 1) / each), threads, 0, net, run);
}

} // namespace snnc

#endif
