// Runs kernels on the CPU, for checks: every CUDA thread is a fiber, which waits for others exactly where a device thread does.
//
// Shared memory initially contains NaN. Fibers run in ascending order, and asynchronous work (copies to shared memory, products of
// warpgroups, words sent to other blocks) is done at once; or, with SNNC_HOST_ORDER=backwards, in descending order, and asynchronous work as
// late as possible. Kernels that wait correctly give the same results.
#ifndef SNNC_CUDA_ON_HOST_HPP
#define SNNC_CUDA_ON_HOST_HPP

#include <cstddef>
#include <cstdint>

namespace snnc {
// Hidden, because a process may load several projects, and because kernels then call these functions directly.
#pragma GCC visibility push(hidden)
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
/// Lets other threads run until the phase with this parity has ended; as on a device, two phases later the parity is that of before.
void wait_for_parity(const volatile unsigned *ended, unsigned phase);
/// Exchanges a value of each lane of a warp; returns the values of all lanes.
const std::uint64_t *exchange(std::uint64_t number);

/// Asynchronous work of a thread that it can wait for, in groups.
enum class Pending { COPIES, PRODUCTS };
/// Maximum bytes of the arguments of asynchronous work.
constexpr std::size_t MAX_WORK = 176;
/// Calls work(of) with a copy of `bytes` bytes of `of`, between now and the wait for its group.
void start(Pending kind, void (*work)(const void *of), const void *of, std::size_t bytes);
/// Ends a group, and waits for all ended groups except the last `later` ones.
void end_group(Pending kind);
void wait_for_groups(Pending kind, unsigned later);
/// Like start, for work of which another block learns by a barrier: between now and the time when all threads wait.
void send(void (*work)(const void *of), const void *of, std::size_t bytes);

template <class Work> void start(Pending kind, const Work &work) {
  static_assert(sizeof work <= MAX_WORK, "asynchronous work has too many arguments");
  start(kind, [](const void *of) { (*static_cast<const Work *>(of))(); }, &work, sizeof work);
}
template <class Work> void send(const Work &work) {
  static_assert(sizeof work <= MAX_WORK, "asynchronous work has too many arguments");
  send([](const void *of) { (*static_cast<const Work *>(of))(); }, &work, sizeof work);
}

} // namespace host
#pragma GCC visibility pop
} // namespace snnc

#endif
