// Launches of kernels with their own number of threads, and their common functions: 16-byte words, loads of matrices from shared memory.
#ifndef SNNC_WHOLE_LAUNCH_HPP
#define SNNC_WHOLE_LAUNCH_HPP

#include "half.hpp"
#include "launch.hpp"

namespace snnc {

#if defined(SNNC_ON_HOST)

#define KERNEL_OF(threads, blocks)

struct alignas(16) Quad {
  std::uint32_t x, y, z, w;
};
struct alignas(16) Four {
  float x, y, z, w;
};

/// Loads four matrices of 8 x 8 16-bit numbers: lane i gives the address of row i % 8 of matrix i / 8, and gets two numbers of row lane / 4 of each.
inline void load_matrices(std::uint32_t (&found)[4], const void *row) {
  const std::uint64_t *rows = host::exchange(reinterpret_cast<std::uint64_t>(row));
  const int lane = thread_index() % LANES;
  for (int i = 0; i < 4; ++i)
    std::memcpy(&found[i], reinterpret_cast<const char *>(rows[8 * i + lane / 4]) + lane % 4 * 4, sizeof found[i]);
  sync_warp();
}

/// Copies a number, or 0, to shared memory asynchronously; complete when copies_done returns.
inline void copy_later(float *to, const float *from, bool there) {
  host::start(host::Pending::COPIES, [=] { *to = there ? *from : 0.0f; });
}
inline void copies_done() {
  host::end_group(host::Pending::COPIES);
  host::wait_for_groups(host::Pending::COPIES, 0);
}

/// Shifts 64 bits right by less than 32, and returns the lower half.
inline std::uint32_t moved_right(std::uint32_t low, std::uint32_t high, int by) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> by);
}

#else

/// A kernel with a given number of threads per block and of resident blocks per multiprocessor.
#define KERNEL_OF(threads, blocks) __global__ __launch_bounds__(threads, blocks)

using Quad = uint4;
using Four = float4;

DEVICE void load_matrices(std::uint32_t (&found)[4], const void *row) {
  const std::uint32_t place = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0, %1, %2, %3 }, [%4];"
               : "=r"(found[0]), "=r"(found[1]), "=r"(found[2]), "=r"(found[3])
               : "r"(place)
               : "memory");
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE void copy_later(float *to, const float *from, bool there) {
  const std::uint32_t place = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from), "r"(there ? 4 : 0) : "memory");
}
DEVICE void copies_done() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
DEVICE void copy_later(float *to, const float *from, bool there) { *to = there ? *from : 0.0f; }
DEVICE void copies_done() {}
#endif

DEVICE std::uint32_t moved_right(std::uint32_t low, std::uint32_t high, int by) {
  return __funnelshift_r(low, high, static_cast<std::uint32_t>(by));
}

#endif

/// Maximum shared memory of a block such that two blocks fit on a multiprocessor.
constexpr std::size_t HALF_OF_SHARED = 100 * 1024;

/// Splits two numbers into a high and a low pair of 16-bit values whose sums equal them to 16 (BFloat16) or 22 bits.
template <class Half> DEVICE void split_pair(float first, float second, std::uint32_t &high, std::uint32_t &low) {
  high = Half::pair(first, second);
  low = Half::pair(first - Half::number(high & 0xffffu), second - Half::number(high >> 16));
}

/// Division by a run-time divisor through a multiplication: exact for dividends below 2^32 / divisor, and below twice the divisor.
struct Divisor {
  std::uint32_t number, factor;

  DEVICE int quotient(int n) const {
    const std::uint32_t whole = static_cast<std::uint32_t>(n);
    if (factor == 0)
      return number == 1 ? n : whole >= number;
    return static_cast<int>(static_cast<std::uint64_t>(whole) * factor >> 32);
  }
  DEVICE int rest(int n) const { return n - quotient(n) * static_cast<int>(number); }
};

inline Divisor divisor(int number) {
  constexpr std::uint64_t WHOLE = 1ull << 32;
  const std::uint64_t of = static_cast<std::uint64_t>(number);
  return {static_cast<std::uint32_t>(number), number == 1 || number > 32768 ? 0 : static_cast<std::uint32_t>((WHOLE + of - 1) / of)};
}

/// Returns bits first ... first + count - 1 (`count` is 1 to 32) of a row of words.
DEVICE std::uint32_t bits_between(const std::uint32_t *words, int first, int count) {
  const std::uint32_t word = static_cast<std::uint32_t>(first) / 32, shift = static_cast<std::uint32_t>(first) % 32;
  std::uint64_t found = words[word];
  if (shift + static_cast<std::uint32_t>(count) > 32)
    found |= static_cast<std::uint64_t>(words[word + 1]) << 32;
  return static_cast<std::uint32_t>(found >> shift) & ~0u >> (32 - count);
}

/// Returns bits first ... first + count - 1 (`count` is 1 to 64) of a row of words.
DEVICE std::uint64_t long_bits(const std::uint32_t *words, int first, int count) {
  const std::uint32_t *from = words + static_cast<std::uint32_t>(first) / 32;
  const int shift = static_cast<int>(static_cast<std::uint32_t>(first) % 32), upto = shift + count;
  const std::uint32_t low = from[0], middle = upto > 32 ? from[1] : 0, high = upto > 64 ? from[2] : 0;
  const std::uint64_t found = static_cast<std::uint64_t>(moved_right(middle, high, shift)) << 32 | moved_right(low, middle, shift);
  return found & ~std::uint64_t{0} >> (64 - count);
}

} // namespace snnc

#endif
