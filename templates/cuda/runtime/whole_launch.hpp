// Starts kernels that have their own number of threads, and what such kernels share: words of 16 bytes, matrices out of shared memory.
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

/// Four matrices of 8 x 8 numbers of 16 bits: lane i names row i % 8 of matrix i / 8, and gets of each matrix two numbers of row lane / 4.
inline void load_matrices(std::uint32_t (&found)[4], const void *row) {
  const std::uint64_t *rows = machine().exchange(reinterpret_cast<std::uint64_t>(row));
  const int lane = thread_index() % LANES;
  for (int i = 0; i < 4; ++i)
    std::memcpy(&found[i], reinterpret_cast<const char *>(rows[8 * i + lane / 4]) + lane % 4 * 4, sizeof found[i]);
  sync_warp();
}

/// Brings a number to shared memory, or 0, by the time that copies_done returns.
inline void copy_later(float *to, const float *from, bool there) { *to = there ? *from : 0.0f; }
inline void copies_done() {}

/// The lower half of 64 bits moved to the right by less than 32.
inline std::uint32_t moved_right(std::uint32_t low, std::uint32_t high, int by) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> by);
}

#else

/// A kernel for blocks of so many threads, so many of which a multiprocessor holds.
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

/// Blocks share a multiprocessor's memory: what one may take so that two find room.
constexpr std::size_t HALF_OF_SHARED = 100 * 1024;

/// Two numbers as pairs of 16 bits whose sum they are, to 16 (BFloat16) or 22 bits.
template <class Half> DEVICE void split_pair(float first, float second, std::uint32_t &high, std::uint32_t &low) {
  high = Half::pair(first, second);
  low = Half::pair(first - Half::number(high & 0xffffu), second - Half::number(high >> 16));
}

/// Division by a number that a kernel is given, by a multiplication: exact for what is divided below 2^32 / number, and below twice the number.
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

/// Bits first ... first + count - 1 (1 to 32) of a row of words.
DEVICE std::uint32_t bits_between(const std::uint32_t *words, int first, int count) {
  const std::uint32_t word = static_cast<std::uint32_t>(first) / 32, shift = static_cast<std::uint32_t>(first) % 32;
  std::uint64_t found = words[word];
  if (shift + static_cast<std::uint32_t>(count) > 32)
    found |= static_cast<std::uint64_t>(words[word + 1]) << 32;
  return static_cast<std::uint32_t>(found >> shift) & ~0u >> (32 - count);
}

/// The same of up to 64 bits.
DEVICE std::uint64_t long_bits(const std::uint32_t *words, int first, int count) {
  const std::uint32_t *from = words + static_cast<std::uint32_t>(first) / 32;
  const int shift = static_cast<int>(static_cast<std::uint32_t>(first) % 32), upto = shift + count;
  const std::uint32_t low = from[0], middle = upto > 32 ? from[1] : 0, high = upto > 64 ? from[2] : 0;
  const std::uint64_t found = static_cast<std::uint64_t>(moved_right(middle, high, shift)) << 32 | moved_right(low, middle, shift);
  return found & ~std::uint64_t{0} >> (64 - count);
}

} // namespace snnc

#endif
