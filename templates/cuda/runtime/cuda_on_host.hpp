// Runs kernels on the CPU, for checks: every CUDA thread is a fiber, which waits for others exactly where a device thread does.
#ifndef SNNC_CUDA_ON_HOST_HPP
#define SNNC_CUDA_ON_HOST_HPP

#include <cstddef>
#include <cstdint>

namespace snnc {
namespace host {

/// Blocks, threads per block, blocks per cluster, and bytes of shared memory per block. `together`: all blocks run concurrently, as in a
/// cooperative launch; otherwise one cluster of blocks after another.
struct Grid {
  unsigned blocks, threads, cluster;
  std::size_t shared;
  bool together;
};

/// Calls kernel(of) in every thread of a grid.
void run_all(const Grid &grid, void (*kernel)(const void *of), const void *of);

/// Calls kernel() in every thread of a grid.
template <class Kernel> void run(const Grid &grid, const Kernel &kernel) {
  run_all(grid, [](const void *of) { (*static_cast<const Kernel *>(of))(); }, &kernel);
}

/// The thread that runs: its index in its block, that of its block, and that of the block in its cluster.
unsigned thread();
unsigned block();
unsigned cluster_rank();
/// The sizes of its grid: threads per block, and blocks.
unsigned threads();
unsigned blocks();
/// Returns the shared memory of its block, or of a block of its cluster.
char *shared();
char *shared_of(unsigned rank);

/// Lets other threads run until the counter has reached `wanted`.
void wait(const volatile unsigned *counter, unsigned wanted);
void sync_block();
void sync_cluster();
/// Exchanges a value of each lane of a warp; returns the values of all lanes.
const std::uint64_t *exchange(std::uint64_t number);

} // namespace host
} // namespace snnc

#endif
