// Values of a sequence in device memory, by step and sample: spikes as bits, other values as rows.
#ifndef SNNC_SOURCES_HPP
#define SNNC_SOURCES_HPP

#include "device.hpp"

namespace snnc {

/// Index of a step of the current segment and a sample in [slot][sample]; steps -PAST ... -1 precede the segment.
template <int PAST> struct Slots {
  /// `shift`: first step of the segment if there are slots for the whole sequence; 0 if there are slots only for a segment.
  int slots, batch, shift;
  /// A single slot is used for all steps.
  ANYWHERE std::size_t place(int t, int b) const {
    return static_cast<std::size_t>(slots == 1 ? 0 : t + PAST + shift) * static_cast<std::size_t>(batch) + static_cast<std::size_t>(b);
  }
  /// Number of rows before those of a step; equal for all samples.
  DEVICE std::ptrdiff_t before(int t) const { return slots == 1 ? 0 : static_cast<std::ptrdiff_t>(t + PAST + shift) * batch; }
  /// Number of rows from one step to the next.
  ANYWHERE int stride() const { return slots == 1 ? 0 : batch; }
  /// The row of step -PAST of the first sample; the rows of all steps of the segment follow.
  ANYWHERE std::size_t front() const { return static_cast<std::size_t>(shift) * static_cast<std::size_t>(batch); }
};

/// A row of spikes, read as numbers.
struct BitRow {
  const std::uint32_t *words;
  DEVICE float operator[](int i) const { return static_cast<float>(words[i / 32] >> (i % 32) & 1u); }
};

/// One value of a row at all steps: step t is `stride` elements after step t - 1; 0: all steps share the value.
template <class Number> struct Along {
  Number *first;
  int stride;
  DEVICE Number &at(int t) const { return first[static_cast<std::ptrdiff_t>(t) * stride]; }
};

/// A source of ones, for biases.
struct Ones {
  struct Row {
    DEVICE float operator[](int) const { return 1.0f; }
  };
  DEVICE Row flat(std::size_t) const { return {}; }
};

/// A stored 16-bit number.
template <class Half> struct Short {
  std::uint16_t bits;
  DEVICE operator float() const { return Half::number(bits); }
  /// Stores a number, clamped to the finite range.
  DEVICE void put(float number) { bits = static_cast<std::uint16_t>(Half::of(Half::bounded(number))); }
};

/// The consecutive rows of a segment, `stride` elements apart.
template <class Number> struct Matrix {
  const Number *data;
  int stride;
  DEVICE const Number *row(int index) const { return data + static_cast<std::size_t>(index) * static_cast<std::size_t>(stride); }
};

/// Rows of SIZE numbers.
template <int SIZE, int PAST> struct Rows {
  static constexpr int VALUES = SIZE;
  float *data;
  Slots<PAST> slots;
  ANYWHERE float *row(int t, int b) const { return data + slots.place(t, b) * SIZE; }
  ANYWHERE const float *values(int t, int b) const { return row(t, b); }
  /// The value at a step for `own` = sample * SIZE + neuron: a thread uses one offset for all buffers of a population.
  DEVICE float &at(int t, int own) const { return data[slots.before(t) * SIZE + own]; }
  ANYWHERE const float *front() const { return data + slots.front() * SIZE; }
  DEVICE Matrix<float> matrix() const { return {front(), SIZE}; }
  /// The rows of the samples from `b` on at a step.
  DEVICE Matrix<float> samples(int t, int b) const { return {row(t, b), SIZE}; }
  /// The row with index `index` from the front, if all steps of a segment are stored.
  DEVICE const float *flat(std::size_t index) const { return front() + index * SIZE; }
};

/// Rows of SIZE 16-bit numbers, padded to whole words.
template <class Half, int SIZE, int PAST> struct Halves {
  static constexpr int WIDTH = (SIZE + 1) / 2 * 2;
  Short<Half> *data;
  Slots<PAST> slots;
  ANYWHERE Short<Half> *row(int t, int b) const { return data + slots.place(t, b) * WIDTH; }
  DEVICE const Short<Half> *values(int t, int b) const { return row(t, b); }
  DEVICE Matrix<Short<Half>> matrix() const { return {data + slots.front() * WIDTH, WIDTH}; }
  DEVICE Matrix<Short<Half>> samples(int t, int b) const { return {row(t, b), WIDTH}; }
  /// The value at a step for `own` = sample * WIDTH + neuron.
  DEVICE Short<Half> &at(int t, int own) const { return data[slots.before(t) * WIDTH + own]; }
  /// Stores a number, clamped to the finite range.
  DEVICE void put(int t, int b, int n, float number) const { row(t, b)[n].put(number); }
};

/// Rows of SIZE spikes, 32 per word.
template <int SIZE, int PAST> struct Bits {
  static constexpr int VALUES = SIZE, WORDS = (SIZE + 31) / 32;
  std::uint32_t *data;
  Slots<PAST> slots;
  ANYWHERE std::uint32_t *row(int t, int b) const { return data + slots.place(t, b) * WORDS; }
  DEVICE BitRow values(int t, int b) const { return {row(t, b)}; }
  ANYWHERE Along<std::uint32_t> along(int b, int word) const { return {row(0, b) + word, slots.stride() * WORDS}; }
  ANYWHERE const std::uint32_t *front() const { return data + slots.front() * WORDS; }
  DEVICE BitRow flat(std::size_t index) const { return {front() + index * WORDS}; }
  /// Stores the spikes of the warp's lanes, for neurons neuron - lane ... neuron - lane + 31.
  DEVICE void store(int t, int b, int neuron, int lane, bool spike) const {
    const std::uint32_t word = ballot(spike);
    if (lane == 0)
      row(t, b)[neuron / 32] = word;
  }
};

} // namespace snnc

#endif
