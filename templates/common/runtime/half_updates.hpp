// ---- updates of weights that are stored as float16: the neighbouring float16 number that a float is rounded to --------------------
//
// The same bits as snnc/compiler/losses/weight_rounding.py, which defines them.

#ifndef SNNC_HALF_UPDATES_HPP
#define SNNC_HALF_UPDATES_HPP

namespace {

/// Values beyond the largest float16 number become that number; NaN stays NaN.
[[maybe_unused]] inline float limited(float value) { return value > 65504.0f ? 65504.0f : value < -65504.0f ? -65504.0f : value; }

/// The finaliser of the hash lowbias32: every bit of the result depends on all bits.
[[maybe_unused]] inline unsigned scrambled(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/// The random number of weight `place` of a parameter; `of_update` is scrambled(key of the parameter ^ number of the update).
[[maybe_unused]] inline unsigned drawn(unsigned of_update, unsigned place) { return scrambled(place ^ of_update); }

/// One of the two float16 numbers next to a value, the nearer one more often: 13 random bits are added below the digits that remain.
[[maybe_unused]] inline float rounded_at_random(float value, unsigned random) {
  const float x = limited(value), size = x < 0.0f ? -x : x;
  if (size < 6.103515625e-05f) {
    // Values below 2^-14 become multiples of 2^-24.
    const float part = static_cast<float>(random >> 8) * 5.9604644775390625e-08f;
    const float whole = static_cast<float>(static_cast<int>(size * 16777216.0f + part)) * 5.9604644775390625e-08f;
    return __builtin_copysignf(whole, x);
  }
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  bits = (bits + (random >> 19)) & 0xffffe000u;
  float found;
  __builtin_memcpy(&found, &bits, sizeof found);
  return found;
}

} // namespace

#endif
