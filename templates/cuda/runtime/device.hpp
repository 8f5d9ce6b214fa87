// Device functions that kernels use: their position in the grid, exchange between the lanes of a warp, barriers.
#ifndef SNNC_DEVICE_HPP
#define SNNC_DEVICE_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(SNNC_ON_HOST)
#include "cuda_on_host.hpp"
#elif !defined(__CUDACC__)
// The host's part of the program, compiled as plain C++: it needs types, and the addresses of kernels, but runs no device function.
#include <cuda_runtime.h>
#endif

#if defined(SNNC_ON_HOST) || !defined(__CUDACC__)
#define DEVICE inline
#define ANYWHERE inline
#define KERNEL
#define KERNEL_OF(threads, blocks)
#define UNROLL(count)
#define WHOLE_GRID const
#else
#define DEVICE __device__ __forceinline__
#define ANYWHERE __host__ __device__ inline
// The assembler is told how many blocks share a multiprocessor; otherwise it plans for more blocks and spills registers.
#define KERNEL __global__ __launch_bounds__(snnc::MAX_THREADS, 1)
/// A kernel with a given number of threads per block, and a minimum number of blocks per multiprocessor.
#define KERNEL_OF(threads, blocks) __global__ __launch_bounds__(threads, blocks)
#define PRAGMA_TEXT(text) _Pragma(#text)
#define UNROLL(count) PRAGMA_TEXT(unroll count)
#define WHOLE_GRID const __grid_constant__
#endif

namespace snnc {

constexpr int LANES = 32;
/// Maximum number of threads per block.
constexpr int MAX_THREADS = 512;

#if defined(SNNC_ON_HOST)

inline int thread_index() { return static_cast<int>(host::thread()); }
inline int block_index() { return static_cast<int>(host::block()); }
inline int block_size() { return static_cast<int>(host::threads()); }
inline int grid_size() { return static_cast<int>(host::blocks()); }
inline char *shared_memory() { return host::shared(); }
inline void sync_block() { host::sync_block(); }
inline void sync_warp() { host::exchange(0); }
inline std::uint32_t ballot(bool mine) {
  const std::uint64_t *all = host::exchange(mine ? 1 : 0);
  std::uint32_t found = 0;
  for (unsigned lane = 0; lane < LANES; ++lane)
    found |= static_cast<std::uint32_t>(all[lane]) << lane;
  return found;
}
template <class Number> Number lane_number(Number mine, int lane) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &mine, sizeof mine);
  const std::uint64_t *all = host::exchange(bits);
  Number found;
  std::memcpy(&found, &all[lane], sizeof found);
  return found;
}
template <class Number> Number shuffle(Number mine, int lane) { return lane_number(mine, lane); }
template <class Number> Number shuffle_xor(Number mine, int mask) { return lane_number(mine, (thread_index() % LANES) ^ mask); }
template <class Number> Number shuffle_up(Number mine, int distance) {
  const int lane = thread_index() % LANES;
  return lane_number(mine, lane < distance ? lane : lane - distance);
}
inline int bits_set(std::uint32_t word) { return __builtin_popcount(word); }
inline int lowest_bit(std::uint32_t word) { return __builtin_ctz(word); }
/// Barrier of a team: announces this block, and waits for the others.
inline void meet(unsigned *counter, unsigned wanted) {
  ++*counter;
  host::wait(counter, wanted);
}
/// The two halves of meet: arrive and wait; and reads of words that other blocks wrote.
inline void count_up(unsigned *counter) { ++*counter; }
inline void wait_for_count(const unsigned *counter, unsigned wanted) { host::wait(counter, wanted); }
inline std::uint32_t load_fresh(const std::uint32_t *from) { return *from; }
inline void copy_four_fresh(std::uint32_t *to, const std::uint32_t *from) { std::memcpy(to, from, 16); }
/// In a check, teams are not clusters.
constexpr bool HAS_CLUSTERS = false;
inline void sync_cluster() { host::sync_cluster(); }
inline std::uint32_t rotate_left(std::uint32_t word, int by) { return word << (by & 31) | word >> (-by & 31); }
/// Shifts two words right by less than 32 bits, and returns the lower word.
inline std::uint32_t shift_right(std::uint32_t low, std::uint32_t high, int by) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> by);
}
inline int not_known(int number) { return number; }
inline void raise_flag(int *flag) { *flag = 1; }
inline void raise_host_flag(int *flag) { *flag = 1; }
inline void add_bits(std::uint32_t *word, std::uint32_t bits) { *word |= bits; }
inline void add_count(unsigned long long *counter, int by) { *counter += static_cast<unsigned long long>(by); }

#elif !defined(__CUDACC__)

// Declared only, because functions that call them are never called by the host.
int thread_index();
int block_index();
int block_size();
int grid_size();
char *shared_memory();
void sync_block();
void sync_warp();
std::uint32_t ballot(bool mine);
template <class Number> Number shuffle(Number mine, int lane);
template <class Number> Number shuffle_xor(Number mine, int mask);
template <class Number> Number shuffle_up(Number mine, int distance);
int bits_set(std::uint32_t word);
int lowest_bit(std::uint32_t word);
void meet(unsigned *counter, unsigned wanted);
std::uint32_t rotate_left(std::uint32_t word, int by);
std::uint32_t shift_right(std::uint32_t low, std::uint32_t high, int by);
void raise_flag(int *flag);
void raise_host_flag(int *flag);
void add_bits(std::uint32_t *word, std::uint32_t bits);
void add_count(unsigned long long *counter, int by);
constexpr bool HAS_CLUSTERS = false;
void sync_cluster();

#else

DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
DEVICE int block_index() { return static_cast<int>(blockIdx.x); }
DEVICE int block_size() { return static_cast<int>(blockDim.x); }
DEVICE int grid_size() { return static_cast<int>(gridDim.x); }
DEVICE char *shared_memory() {
  extern __shared__ double whole_block[];
  return reinterpret_cast<char *>(whole_block);
}
DEVICE void sync_block() { __syncthreads(); }
DEVICE void sync_warp() { __syncwarp(); }
DEVICE std::uint32_t ballot(bool mine) { return __ballot_sync(0xffffffffu, mine); }
template <class Number> DEVICE Number shuffle(Number mine, int lane) { return __shfl_sync(0xffffffffu, mine, lane); }
template <class Number> DEVICE Number shuffle_xor(Number mine, int mask) { return __shfl_xor_sync(0xffffffffu, mine, mask); }
template <class Number> DEVICE Number shuffle_up(Number mine, int distance) { return __shfl_up_sync(0xffffffffu, mine, distance); }
DEVICE int bits_set(std::uint32_t word) { return __popc(word); }
DEVICE int lowest_bit(std::uint32_t word) { return __ffs(static_cast<int>(word)) - 1; }
DEVICE std::uint32_t rotate_left(std::uint32_t word, int by) { return __funnelshift_l(word, word, static_cast<unsigned>(by)); }
/// Barrier of a team: announces this block, and waits for the others. Writes before it are visible to all after it.
DEVICE void meet(unsigned *counter, unsigned wanted) {
  __threadfence();
  atomicAdd(counter, 1u);
  while (static_cast<int>(*static_cast<volatile unsigned *>(counter) - wanted) < 0) {
  }
  __threadfence();
}
/// The two halves of meet for one thread of a block, with the cheapest instructions: writes before count_up are visible after the wait.
DEVICE void count_up(unsigned *counter) { asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory"); }
/// A wait that never ends is a bug: the kernel traps after about a minute.
DEVICE void wait_for_count(const unsigned *counter, unsigned wanted) {
  constexpr unsigned MAX_TRIES = 1u << 27;
  unsigned found, tries = 0;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(counter) : "memory");
    if (++tries > MAX_TRIES)
      __trap();
  } while (static_cast<int>(found - wanted) < 0);
}
/// Reads a word that other blocks wrote from L2, because the L1 cache of the multiprocessor may be stale.
DEVICE std::uint32_t load_fresh(const std::uint32_t *from) { return __ldcg(from); }
DEVICE void copy_four_fresh(std::uint32_t *to, const std::uint32_t *from) {
  *reinterpret_cast<uint4 *>(to) = __ldcg(reinterpret_cast<const uint4 *>(from));
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool HAS_CLUSTERS = true;
/// Waits for all threads of the cluster; writes before the barrier are visible to all after it.
DEVICE void sync_cluster() { asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory"); }
#else
constexpr bool HAS_CLUSTERS = false;
DEVICE void sync_cluster() {}
#endif
DEVICE std::uint32_t shift_right(std::uint32_t low, std::uint32_t high, int by) {
  return __funnelshift_r(low, high, static_cast<unsigned>(by));
}
/// Returns the same number, but hides its value from the compiler, so that derived values are recomputed instead of kept in registers.
DEVICE int not_known(int number) {
  asm volatile("" : "+r"(number));
  return number;
}
DEVICE void raise_flag(int *flag) { atomicExch(flag, 1); }
/// Sets a flag that the host may read at any time.
DEVICE void raise_host_flag(int *flag) {
  *static_cast<volatile int *>(flag) = 1;
  __threadfence_system();
}
/// Sets bits of a word; the result does not depend on the order of calls.
DEVICE void add_bits(std::uint32_t *word, std::uint32_t bits) { atomicOr(word, bits); }
DEVICE void add_count(unsigned long long *counter, int by) { atomicAdd(counter, static_cast<unsigned long long>(by)); }

#endif

DEVICE int lane_index() { return thread_index() % LANES; }
DEVICE int least(int a, int b) { return a < b ? a : b; }
DEVICE int most(int a, int b) { return a > b ? a : b; }
DEVICE int whole_parts(int count, int part) { return (count + part - 1) / part; }

/// Returns the sum over the lanes, in a fixed order, to all lanes.
template <class Number> DEVICE Number warp_sum(Number mine) {
  UNROLL(5)
  for (int mask = LANES / 2; mask > 0; mask /= 2)
    mine += shuffle_xor(mine, mask);
  return mine;
}

template <class Number> DEVICE Number warp_highest(Number mine) {
  UNROLL(5)
  for (int mask = LANES / 2; mask > 0; mask /= 2) {
    const Number other = shuffle_xor(mine, mask);
    mine = other > mine ? other : mine;
  }
  return mine;
}

} // namespace snnc

#endif
