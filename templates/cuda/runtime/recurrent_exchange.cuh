// Exchange of spikes and deltas between the blocks of a cluster in a step, and reading of mma factors from it.
//
// Inputs are processed 32 at a time, as two fragments of depth 16 (`half` 0 and 1). The order of inputs is arbitrary as long as the weights
// have the same order: here register b of lane 4 g + c of fragment `half` has inputs 4 c + 2 half + b and that + 16, so that a word of
// 32 spikes becomes factors by a shift and a mask.
#ifndef SNNC_RECURRENT_EXCHANGE_CUH
#define SNNC_RECURRENT_EXCHANGE_CUH

#include "recurrent.cuh"

namespace snnc {

/// Returns the first of the two inputs (the other is 16 higher) in register b of a lane of part c.
ANYWHERE constexpr int input_of(int half, int b, int c) { return 4 * c + 2 * half + b; }

/// Sends words to a block of the cluster; a single block only stores them and uses its own barrier.
template <int BLOCKS, int WORDS> DEVICE void put_words(const std::uint32_t (&words)[WORDS], Place to, Place barrier) {
  if constexpr (BLOCKS > 1)
    send(to, words, barrier);
  else
    store_shared(to, words);
}

/// Returns the same address in a block of the cluster.
template <int BLOCKS> DEVICE Place place_of(Place own, int target) {
  return BLOCKS > 1 ? place_in(own, target < BLOCKS ? target : 0) : own;
}

/// Exchange of spikes as bits: [sample][32 neurons]. WORDS: words of a row that are read.
template <class Units, int PARTS, int WORDS> struct SpikeExchange {
  static constexpr int FACTORS = 1;
  /// Words per 32 neurons of a sample.
  static constexpr int CHUNK = 1;
  /// A spike is 2 in both 16-bit types, which is a single bit.
  static constexpr float ONE = 2.0f;
  /// Words that a warp sends in one store.
  static constexpr int WIDTH = Units::CHUNKS % 4 == 0 && Units::OF_WARP % 4 == 0   ? 4
                               : Units::CHUNKS % 2 == 0 && Units::OF_WARP % 2 == 0 ? 2
                                                                                   : 1;
  /// Words per row; eight consecutive rows begin in eight different banks.
  static constexpr int ROW = (parts_of(larger_of(WORDS, Units::BLOCKS *Units::CHUNKS), WIDTH) | 1) * WIDTH;
  static constexpr int SLOT_BYTES = parts_of(Units::SAMPLES * ROW, 4) * 16, SENT_BYTES = Units::BLOCKS * Units::ALL * 4;

  /// Returns 32 spikes from an input on; a row has one word of padding.
  DEVICE static std::uint32_t bits(const char *slot, int sample, int input) {
    const std::uint32_t *row = reinterpret_cast<const std::uint32_t *>(slot) + sample * ROW + input / 32;
    return shift_right(row[0], row[1], input % 32);
  }

  /// Reads the factors of a lane of part c.
  DEVICE static void read(const char *slot, int sample, int word, int c, int half, std::uint32_t (&factors)[1][2]) {
    const std::uint32_t bits = rotate_left(reinterpret_cast<const std::uint32_t *>(slot)[sample * ROW + word], 11 - 4 * c);
    factors[0][0] = bits << (3 - 2 * half) & 0x40004000u;
    factors[0][1] = bits << (2 - 2 * half) & 0x40004000u;
  }

  /// Sends the words of a warp's units to a slot of all blocks, one lane per block.
  DEVICE static void send_units(const std::uint32_t (&words)[Units::OF_WARP], Place slot, Place barrier, int rank, int warp, int lane) {
    const int target = least(lane, Units::RECEIVERS - 1);
    const Place to = place_of<Units::RECEIVERS>(slot, target), arrive = place_of<Units::RECEIVERS>(barrier, target);
    UNROLL(16)
    for (int i = 0; i < Units::OF_WARP; i += WIDTH) {
      const int unit = Units::index(warp, i);
      std::uint32_t sent[WIDTH];
      UNROLL(4)
      for (int j = 0; j < WIDTH; ++j)
        sent[j] = words[i + j];
      if (Units::exists(unit) && lane < Units::RECEIVERS)
        put_words<Units::RECEIVERS>(sent, to + 4 * (Units::sample(unit) * ROW + rank * Units::CHUNKS + Units::chunk(unit)), arrive);
    }
  }

  /// Fills a slot with the spikes of a step before the segment.
  template <class Way> DEVICE static void fill(const typename Way::Net &net, const Run &run, char *slot, int n, int first) {
    constexpr int FILLED = parts_of(Way::SIZE, 32);
    for (int i = thread_index(); i < Units::SAMPLES * FILLED; i += block_size())
      if (first + i / FILLED < run.batch)
        reinterpret_cast<std::uint32_t *>(slot)[i / FILLED * ROW + i % FILLED] = Way::Loop::word(net, n, first + i / FILLED, i % FILLED);
  }
};

/// Exchange of deltas as bfloat16, in one part or two (the second is the rounding error of the first): [sample][32 neurons][half][c][part][b].
template <class Units, int PARTS, int WORDS> struct DeltaExchange {
  static constexpr int FACTORS = PARTS;
  static constexpr float ONE = 1.0f;
  /// Words per 32 neurons of a sample.
  static constexpr int CHUNK = 16 * PARTS;
  /// Words per row; rows that are read at the same time are in different banks.
  static constexpr int ROW = larger_of(WORDS, Units::BLOCKS *Units::CHUNKS) * CHUNK + 8 * PARTS;
  static constexpr int SLOT_BYTES = Units::SAMPLES * ROW * 4, SENT_BYTES = Units::BLOCKS * Units::ALL * CHUNK * 4;
  /// Lanes that send a chunk, 16 bytes each, and blocks to which a lane sends.
  static constexpr int PIECES = CHUNK / 4, AT_ONCE = LANES / PIECES, TARGETS = parts_of(Units::RECEIVERS, AT_ONCE);

  DEVICE static void read(const char *slot, int sample, int word, int c, int half, std::uint32_t (&factors)[PARTS][2]) {
    const std::uint32_t *words = reinterpret_cast<const std::uint32_t *>(slot) + sample * ROW + word * CHUNK + (half * 4 + c) * 2 * PARTS;
    if constexpr (PARTS == 2) {
      const Quad found = *reinterpret_cast<const Quad *>(words);
      factors[0][0] = found.words[0];
      factors[0][1] = found.words[1];
      factors[1][0] = found.words[2];
      factors[1][1] = found.words[3];
    } else {
      const Pair found = *reinterpret_cast<const Pair *>(words);
      factors[0][0] = found.words[0];
      factors[0][1] = found.words[1];
    }
  }

  /// Returns the index of the word with a part of neurons p and p + 16 of a chunk.
  DEVICE static int place(int p, int part) { return (p >> 1 & 1) * 8 * PARTS + p / 4 * 2 * PARTS + part * 2 + (p & 1); }
  /// Returns the lane that has a word: lane p has the first part of pair p, lane p + 16 the second.
  DEVICE static int holder(int word) {
    const int half = word / (8 * PARTS), c = word / (2 * PARTS) % 4, part = word / 2 % PARTS, b = word % 2;
    return input_of(half, b, c) + 16 * part;
  }

  /// Returns the word of a lane, from its own delta and the delta of the neuron at a distance of 16.
  DEVICE static std::uint32_t word_of(float delta, int lane) {
    const float other = shuffle_xor(delta, 16);
    const float low = lane < 16 ? delta : other, high = lane < 16 ? other : delta;
    return part_of(low, high, lane / 16);
  }
  DEVICE static std::uint32_t part_of(float low, float high, int part) {
    const std::uint32_t first = BFloat16::pair(low, high);
    return part == 0 ? first : BFloat16::pair(low - BFloat16::number(first), high - number_of(first & 0xffff0000u));
  }

  /// Sends the words of a warp's units to a slot of all blocks, a few lanes per block.
  DEVICE static void send_units(const std::uint32_t (&words)[Units::OF_WARP], Place slot, Place barrier, int rank, int warp, int lane) {
    const int piece = lane % PIECES;
    // Either the addresses of several blocks or the words of several units are kept in registers, whichever needs fewer.
    constexpr int EACH = TARGETS == 1 ? 1 : Units::OF_WARP;
    UNROLL(16)
    for (int begin = 0; begin < Units::OF_WARP; begin += EACH) {
      std::uint32_t sent[EACH][4];
      UNROLL(16)
      for (int i = 0; i < EACH; ++i)
        UNROLL(4)
      for (int j = 0; j < 4; ++j)
        sent[i][j] = shuffle(words[begin + i], holder(4 * piece + j));
      UNROLL(16)
      for (int k = 0; k < TARGETS; ++k) {
        const int target = k * AT_ONCE + lane / PIECES;
        const Place to = place_of<Units::RECEIVERS>(slot, target), arrive = place_of<Units::RECEIVERS>(barrier, target);
        UNROLL(16)
        for (int i = 0; i < EACH; ++i) {
          const int unit = Units::index(warp, begin + i),
                    at = 4 * (Units::sample(unit) * ROW + (rank * Units::CHUNKS + Units::chunk(unit)) * CHUNK + 4 * piece);
          if (Units::exists(unit) && target < Units::RECEIVERS)
            put_words<Units::RECEIVERS>(sent[i], to + at, arrive);
        }
      }
    }
  }

  template <class Way> DEVICE static void fill(const typename Way::Net &net, const Run &run, char *slot, int n, int first) {
    constexpr int CHUNKS = parts_of(Way::SIZE, 32), PAIRS = CHUNKS * 16;
    for (int i = thread_index(); i < Units::SAMPLES * PAIRS; i += block_size()) {
      const int b = first + i / PAIRS, chunk = i % PAIRS / 16, p = i % 16, low = chunk * 32 + p;
      if (b >= run.batch)
        continue;
      const int t = Way::step(run, n);
      const float one = low < Way::SIZE ? Way::behind(net, run, t, b, low) : 0.0f,
                  other = low + 16 < Way::SIZE ? Way::behind(net, run, t, b, low + 16) : 0.0f;
      UNROLL(2)
      for (int part = 0; part < PARTS; ++part)
        reinterpret_cast<std::uint32_t *>(slot)[i / PAIRS * ROW + chunk * CHUNK + place(p, part)] = part_of(one, other, part);
    }
  }
};

/// Exchange of deltas as float32: [sample][neuron].
template <class Units, int INPUTS> struct FloatExchange {
  static constexpr int CHUNK = 32;
  static constexpr int ROW = (larger_of(INPUTS, Units::BLOCKS *Units::CHUNKS * 32) + 3) / 4 * 4;
  static constexpr int SLOT_BYTES = Units::SAMPLES * ROW * 4, SENT_BYTES = Units::BLOCKS * Units::ALL * 128;
  static constexpr int PIECES = 8, AT_ONCE = LANES / PIECES, TARGETS = parts_of(Units::RECEIVERS, AT_ONCE);

  DEVICE static std::uint32_t word_of(float delta, int) { return bits_of(delta); }

  DEVICE static void send_units(const std::uint32_t (&words)[Units::OF_WARP], Place slot, Place barrier, int rank, int warp, int lane) {
    const int piece = lane % PIECES;
    UNROLL(16)
    for (int i = 0; i < Units::OF_WARP; ++i) {
      const int unit = Units::index(warp, i),
                at = 4 * (Units::sample(unit) * ROW + (rank * Units::CHUNKS + Units::chunk(unit)) * 32 + 4 * piece);
      std::uint32_t sent[4];
      UNROLL(4)
      for (int j = 0; j < 4; ++j)
        sent[j] = shuffle(words[i], 4 * piece + j);
      UNROLL(16)
      for (int k = 0; k < TARGETS; ++k) {
        const int target = k * AT_ONCE + lane / PIECES;
        if (Units::exists(unit) && target < Units::RECEIVERS)
          put_words<Units::RECEIVERS>(sent, place_of<Units::RECEIVERS>(slot, target) + at, place_of<Units::RECEIVERS>(barrier, target));
      }
    }
  }

  template <class Way> DEVICE static void fill(const typename Way::Net &net, const Run &run, char *slot, int n, int first) {
    for (int i = thread_index(); i < Units::SAMPLES * Way::SIZE; i += block_size())
      if (first + i / Way::SIZE < run.batch)
        reinterpret_cast<float *>(slot)[i / Way::SIZE * ROW + i % Way::SIZE] =
            Way::behind(net, run, Way::step(run, n), first + i / Way::SIZE, i % Way::SIZE);
  }
};

} // namespace snnc

#endif
