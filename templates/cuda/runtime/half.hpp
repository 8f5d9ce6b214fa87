// 16-bit numbers: rounding, reading, and products of their fragments with float32 sums.
#ifndef SNNC_HALF_HPP
#define SNNC_HALF_HPP

#include "device.hpp"

namespace snnc {

DEVICE std::uint32_t bits_of(float number) {
  std::uint32_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}
DEVICE float number_of(std::uint32_t bits) {
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

/// A product of fragments A [16][16] (row-major) and B [16][8] (column-major), as mma.m16n8k16 of the PTX ISA, without tensor cores:
/// lane 4 g + t has rows g and g + 8 of A, column g of B, and rows g and g + 8 of columns 2 t and 2 t + 1 of the sums.
#if defined(SNNC_ON_HOST)
template <class Half> void multiply_by_shuffles(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], int lane) {
  const int row = lane / 4 * 4, column = lane % 4 * 8;
  std::uint32_t rows[4][4], columns[8][2];
  // Lanes exchange two numbers at a time, to reduce switches of fibers.
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t *all = host::exchange(a[2 * half] | static_cast<std::uint64_t>(a[2 * half + 1]) << 32);
    for (int part = 0; part < 4; ++part) {
      rows[part][2 * half] = static_cast<std::uint32_t>(all[row + part]);
      rows[part][2 * half + 1] = static_cast<std::uint32_t>(all[row + part] >> 32);
    }
  }
  const std::uint64_t *all = host::exchange(b[0] | static_cast<std::uint64_t>(b[1]) << 32);
  for (int part = 0; part < 8; ++part) {
    columns[part][0] = static_cast<std::uint32_t>(all[column + part]);
    columns[part][1] = static_cast<std::uint32_t>(all[column + part] >> 32);
  }
  for (int part = 0; part < 4; ++part)
    for (int half = 0; half < 2; ++half)
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t left = rows[part][2 * half + i / 2], right = columns[i % 2 * 4 + part][half];
        sums[i] = fmaf(Half::number(left >> 16), Half::number(right >> 16), fmaf(Half::number(left), Half::number(right), sums[i]));
      }
}
#else
template <class Half>
DEVICE void multiply_by_shuffles(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], int lane) {
  const int row = lane / 4 * 4, column = lane % 4 * 8;
  UNROLL(1)
  for (int part = 0; part < 4; ++part)
    UNROLL(2)
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t upper = shuffle(a[2 * half], row + part), lower = shuffle(a[2 * half + 1], row + part);
    const std::uint32_t left = shuffle(b[half], column + part), right = shuffle(b[half], column + 4 + part);
    sums[0] = fmaf(Half::number(upper >> 16), Half::number(left >> 16), fmaf(Half::number(upper), Half::number(left), sums[0]));
    sums[1] = fmaf(Half::number(upper >> 16), Half::number(right >> 16), fmaf(Half::number(upper), Half::number(right), sums[1]));
    sums[2] = fmaf(Half::number(lower >> 16), Half::number(left >> 16), fmaf(Half::number(lower), Half::number(left), sums[2]));
    sums[3] = fmaf(Half::number(lower >> 16), Half::number(right >> 16), fmaf(Half::number(lower), Half::number(right), sums[3]));
  }
}
#endif

/// bfloat16: the upper half of a float.
struct BFloat16 {
  static constexpr std::uint32_t ONE = 0x3f80;
  /// Whether its range is smaller than that of float.
  static constexpr bool NARROW = false;
  /// Whether tensor cores multiply it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  static constexpr bool TENSOR_CORES = false;
#else
  static constexpr bool TENSOR_CORES = true;
#endif

  /// Rounds to the nearest value, ties to even.
  DEVICE static std::uint32_t of(float number) {
    const std::uint32_t bits = bits_of(number);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
      return bits >> 16 | 0x40u;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  }
  /// Returns the value of the lower 16 bits.
  DEVICE static float number(std::uint32_t bits) { return number_of(bits << 16); }
  DEVICE static float bounded(float number) { return number; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  DEVICE static std::uint32_t pair(float low, float high) {
    std::uint32_t found;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(found) : "f"(high), "f"(low));
    return found;
  }
  DEVICE static void multiply(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], int) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %0, %1, %2, %3 }, { %4, %5, %6, %7 }, { %8, %9 }, { %0, %1, %2, %3 };"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#else
  DEVICE static std::uint32_t pair(float low, float high) { return of(low) | of(high) << 16; }
  DEVICE static void multiply(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], int lane) {
    multiply_by_shuffles<BFloat16>(sums, a, b, lane);
  }
#endif
};

/// IEEE 754 binary16.
struct Float16 {
  static constexpr std::uint32_t ONE = 0x3c00;
  static constexpr bool NARROW = true;
  static constexpr float MOST = 65504;

  /// Clamps a number to the finite range of float16.
  DEVICE static float bounded(float number) { return number > MOST ? MOST : number < -MOST ? -MOST : number; }
#if defined(__CUDA_ARCH__)
  DEVICE static std::uint32_t of(float number) {
    std::uint16_t found;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(found) : "f"(number));
    return found;
  }
  DEVICE static float number(std::uint32_t bits) {
    float found;
    asm("cvt.f32.f16 %0, %1;" : "=f"(found) : "h"(static_cast<std::uint16_t>(bits)));
    return found;
  }
#else
  /// Rounds to the nearest value, ties to even.
  DEVICE static std::uint32_t of(float number) {
    const std::uint32_t bits = bits_of(number), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
      return sign | 0x7e00u;
    // 65520, half way between the largest float16 value and the next power of two.
    if (size >= 0x477ff000u)
      return sign | 0x7c00u;
    // Below 2^-14, values are multiples of 2^-24, the unit of the last bit of a float between 0.5 and 1.
    if (size < 0x38800000u)
      return sign | (bits_of(number_of(size) + 0.5f) - bits_of(0.5f));
    return sign | ((size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13);
  }
  DEVICE static float number(std::uint32_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16, size = (bits & 0x7fffu) << 13;
    if (size >= 0x7c00u << 13)
      return number_of(sign | size | 0x7f800000u);
    return number_of(sign | bits_of(number_of(size) * number_of((127u + 112u) << 23)));
  }
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  DEVICE static std::uint32_t pair(float low, float high) {
    std::uint32_t found;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(found) : "f"(high), "f"(low));
    return found;
  }
  DEVICE static void multiply(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], int) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %0, %1, %2, %3 }, { %4, %5, %6, %7 }, { %8, %9 }, { %0, %1, %2, %3 };"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#else
  DEVICE static std::uint32_t pair(float low, float high) { return of(low) | of(high) << 16; }
#if defined(__CUDA_ARCH__)
  /// sm_75 supports only products of half the depth, so two are needed.
  DEVICE static void multiply(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], int) {
    UNROLL(2)
    for (int half = 0; half < 2; ++half)
      asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 { %0, %1, %2, %3 }, { %4, %5 }, { %6 }, { %0, %1, %2, %3 };"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
  }
#else
  DEVICE static void multiply(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], int lane) {
    multiply_by_shuffles<Float16>(sums, a, b, lane);
  }
#endif
#endif
};

} // namespace snnc

#endif
