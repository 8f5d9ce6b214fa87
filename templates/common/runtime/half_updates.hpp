// ---- rounding of updates of float16 weights ----------------------------------------------------------------------------------------
//
// Results equal those of snnc/compiler/losses/weight_rounding.py, which defines the rounding, bit by bit.

#ifndef SNNC_HALF_UPDATES_HPP
#define SNNC_HALF_UPDATES_HPP

#ifndef SNNC_ROUNDS
#define SNNC_ROUNDS [[maybe_unused]] inline
#endif

namespace {

/// Returns the bits of a float.
SNNC_ROUNDS unsigned bits_of_weight(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  unsigned bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}
SNNC_ROUNDS float weight_of_bits(unsigned bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

/// Limits a value to the range of float16; NaN stays NaN.
SNNC_ROUNDS float limited(float value) { return value > 65504.0f ? 65504.0f : value < -65504.0f ? -65504.0f : value; }

/// The finaliser of the hash lowbias32: every bit of the result depends on all bits.
SNNC_ROUNDS unsigned scrambled(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/// Returns the random number of the weight at index `place`; `of_update` is scrambled(key of the parameter ^ number of the update).
SNNC_ROUNDS unsigned drawn(unsigned of_update, unsigned place) { return scrambled(place ^ of_update); }

/// Rounds stochastically to one of the two neighbouring float16 values: 13 random bits are added below the bits that remain.
SNNC_ROUNDS float rounded_at_random(float value, unsigned random) {
  const float x = limited(value), size = x < 0.0f ? -x : x;
  if (size < 6.103515625e-05f) {
    // Values below 2^-14 are rounded to multiples of 2^-24.
    const float part = static_cast<float>(random >> 8) * 5.9604644775390625e-08f;
    const float whole = static_cast<float>(static_cast<int>(size * 16777216.0f + part)) * 5.9604644775390625e-08f;
    return weight_of_bits(bits_of_weight(whole) | (bits_of_weight(x) & 0x80000000u));
  }
  return weight_of_bits((bits_of_weight(x) + (random >> 19)) & 0xffffe000u);
}

} // namespace

#endif
