// The recurrent core on tensor cores: a cluster of blocks processes 8 samples or a multiple; each block keeps the weights of its own neurons
// for all steps.
//
// For results as exact as float32, weights are split into two 16-bit values: spikes are exact, so a forward product needs two products of
// fragments; deltas are also split, and a backward product needs three. Weight fragments stay in registers; if these do not suffice, the low
// halves are in shared memory. Warps share the neurons and inputs of a block; their sums are added in shared memory in a fixed order, so
// results have the same bits for any order of clusters and any number of multiprocessors. A different number of blocks or warps changes the
// order of sums.
#ifndef SNNC_RECURRENT_MMA_CUH
#define SNNC_RECURRENT_MMA_CUH

#include "recurrent_loop.cuh"

#include <type_traits>

namespace snnc {

template <class Way, class Shape> class MmaProducts;

/// Compile-time division of the work: a cluster of BLOCKS blocks with WARPS warps processes 8 GROUPS samples; a team of blocks that
/// communicate through memory processes 8 GROUPS samples at a time.
template <class Way, int BLOCKS_OF, int GROUPS_OF, int WARPS_OF, Link LINK_OF = Link::CLUSTER> struct MmaShape {
  static constexpr Link LINK = LINK_OF;
  static constexpr bool OVER_MEMORY = LINK != Link::CLUSTER;
  static constexpr int BLOCKS = BLOCKS_OF, GROUPS = GROUPS_OF, WARPS = WARPS_OF, THREADS = WARPS * LANES, SAMPLES = 8 * GROUPS,
                       INPUTS = Way::SIZE;
  static constexpr int ALL_WORDS = parts_of(Way::SIZE, 32), CHUNKS = parts_of(ALL_WORDS, BLOCKS), NEURONS = CHUNKS * 32,
                       TILES = NEURONS / 16;

  /// Returns the words that pass through shared memory in a step if `tile_groups` groups of warps share the neurons, and the warps of a group the inputs.
  static constexpr int traffic(int tile_groups) {
    const int factors = Way::BACK ? 16 * Way::PARTS : 8;
    return tile_groups * ALL_WORDS * factors + 2 * (WARPS / tile_groups) * NEURONS;
  }
  static constexpr int best_groups() {
    int best = 1;
    for (int groups = 1; groups <= WARPS && TILES % groups == 0; groups *= 2)
      if (WARPS / best > ALL_WORDS || traffic(groups) <= traffic(best))
        best = groups;
    return best;
  }
  static constexpr int TILE_GROUPS = best_groups(), OWN_TILES = TILES / TILE_GROUPS;
  /// Parts of the inputs, and words of 32 inputs per warp.
  static constexpr int INPUT_PARTS = WARPS / TILE_GROUPS, OWN_WORDS = parts_of(ALL_WORDS, INPUT_PARTS),
                       READ_WORDS = INPUT_PARTS * OWN_WORDS;

  using Own = Units<BLOCKS, CHUNKS, SAMPLES, WARPS, !OVER_MEMORY>;
  using Exchange = std::conditional_t<Way::BACK, DeltaExchange<Own, Way::PARTS, READ_WORDS>, SpikeExchange<Own, Way::PARTS, READ_WORDS>>;

  static constexpr int FRAGMENTS = OWN_TILES * OWN_WORDS * 2, MAX_REGISTERS = 64;
  /// Whether the low halves of weights are in shared memory, and the registers of a thread for weights.
  static constexpr bool LOW_SHARED = Way::PARTS == 2 && FRAGMENTS * 8 > MAX_REGISTERS;
  static constexpr int REGISTERS = FRAGMENTS * (LOW_SHARED ? 4 : 4 * Way::PARTS);
  using Room = SharedRoom<Way, Own::RECEIVERS, Exchange::SLOT_BYTES, INPUT_PARTS * SAMPLES * NEURONS * 4,
                          LOW_SHARED ? WARPS * FRAGMENTS * LANES * 16 : 0>;
  using Products = MmaProducts<Way, MmaShape>;
  static constexpr bool TENSOR_CORES = true;
  static constexpr bool FITS = Room::BYTES <= Room::MOST && REGISTERS <= MAX_REGISTERS;
};

/// The weights of a block, in registers, and their products.
template <class Way, class Shape> class MmaProducts {
public:
  /// Loads the weights of the block's neurons; `scratch` has space for one number per warp.
  DEVICE void load(const typename Way::Net &net, int rank, float *scratch, char *shared) {
    low = reinterpret_cast<Quad *>(shared);
    const float *weights = Way::Loop::weights(net);
    const float scale = Half::NARROW ? find_scale(weights, rank, scratch) : 1.0f;
    descale /= Shape::Exchange::ONE;
    UNROLL(16)
    for (int m = 0; m < TILES; ++m)
      UNROLL(32)
    for (int w = 0; w < WORDS; ++w)
      UNROLL(2)
    for (int half = 0; half < 2; ++half)
      load_fragment(weights, rank, scale, m, w, half);
  }

  /// Multiplies the warp's weights by the values that all neurons sent, for all samples.
  DEVICE void multiply(const char *from, float *sums) const {
    float found[TILES][GROUPS][CHAINS][4] = {};
    UNROLL(32)
    for (int w = 0; w < WORDS; ++w)
      multiply_word(found, from, w);
    // If weights fill the registers, the places of sums are computed in each step.
    const int thread = WIDE ? not_known(thread_index()) : thread_index(), lane = thread % LANES, own_warp = thread / LANES;
    UNROLL(16)
    for (int m = 0; m < TILES; ++m)
      UNROLL(8)
    for (int j = 0; j < GROUPS; ++j)
      UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      float sum = found[m][j][0][i];
      UNROLL(8)
      for (int chain = 1; chain < CHAINS; ++chain)
        sum += found[m][j][chain][i];
      sums[sum_index(input_part(own_warp), 8 * j + 2 * (lane % 4) + i % 2, row(own_warp, lane, m, i / 2))] = sum;
    }
  }

  /// Returns the sum over all inputs; to be called after a block barrier.
  DEVICE float sum(const float *sums, int sample, int neuron) const {
    const float *from = sums + sum_index(0, sample, neuron);
    float all = from[0];
    UNROLL(16)
    for (int i = 1; i < Shape::INPUT_PARTS; ++i)
      all += from[i * Shape::SAMPLES * Shape::NEURONS];
    return all * descale;
  }

private:
  using Half = typename Way::Half;
  using Exchange = typename Shape::Exchange;
  static constexpr int TILES = Shape::OWN_TILES, WORDS = Shape::OWN_WORDS, GROUPS = Shape::GROUPS, PARTS = Way::PARTS;
  /// Products of fragments per float32 product, and independent accumulators.
  static constexpr int PRODUCTS = PARTS == 1 ? 1 : Way::BACK ? 3 : 2;
  static constexpr bool WIDE = Shape::REGISTERS > 32;
  static constexpr int CHAINS = TILES * GROUPS == 1 && !WIDE ? 2 * PRODUCTS : TILES * GROUPS <= (WIDE ? 1 : 2) ? PRODUCTS : 1;

  std::uint32_t high[TILES][WORDS][2][4], own_low[Shape::LOW_SHARED || PARTS == 1 ? 1 : TILES][WORDS][2][4];
  Quad *low = nullptr;
  float descale = 1;

  DEVICE static int warp() { return thread_index() / LANES; }
  DEVICE static int part_of_lane() { return lane_index() % 4; }
  DEVICE static int input_part(int of_warp) { return of_warp / Shape::TILE_GROUPS; }
  /// Returns the neuron in the upper (0) or lower (1) row of a lane in a tile of a warp.
  DEVICE static int row(int of_warp, int lane, int m, int lower) {
    return (of_warp % Shape::TILE_GROUPS * TILES + m) * 16 + lane / 4 + lower * 8;
  }

  DEVICE static float weight(const float *weights, int neuron, int input) {
    return neuron < Way::SIZE && input < Way::SIZE ? Way::weight(weights, neuron, input) : 0.0f;
  }

  /// Returns a power of two that scales the block's largest weight to near the maximum of float16, so that low halves do not underflow.
  DEVICE float find_scale(const float *weights, int rank, float *scratch) {
    float largest = 0;
    UNROLL(4)
    for (int input = warp(); input < Way::SIZE; input += Shape::WARPS)
      UNROLL(8)
    for (int j = 0; j < Shape::CHUNKS; ++j)
      largest = fmaxf(largest, fabsf(weight(weights, rank * Shape::NEURONS + j * 32 + lane_index(), input)));
    largest = warp_highest(largest);
    if (lane_index() == 0)
      scratch[warp()] = largest;
    sync_block();
    for (int i = 0; i < Shape::WARPS; ++i)
      largest = fmaxf(largest, scratch[i]);
    sync_block();
    constexpr int BIAS = 127, HIGHEST = 14, MAX_EXPONENT = 120;
    const int exponent = largest > 0 ? least(MAX_EXPONENT, HIGHEST + BIAS - static_cast<int>(bits_of(largest) >> 23)) : 0;
    descale = number_of(static_cast<std::uint32_t>(BIAS - exponent) << 23);
    return number_of(static_cast<std::uint32_t>(BIAS + exponent) << 23);
  }

  DEVICE void load_fragment(const float *weights, int rank, float scale, int m, int w, int half) {
    Quad rest;
    UNROLL(4)
    for (int r = 0; r < 4; ++r) {
      const int neuron = rank * Shape::NEURONS + row(warp(), lane_index(), m, r % 2),
                input = (input_part(warp()) * WORDS + w) * 32 + input_of(half, r / 2, part_of_lane());
      const float one = weight(weights, neuron, input) * scale, other = weight(weights, neuron, input + 16) * scale;
      const std::uint32_t both = Half::pair(one, other);
      high[m][w][half][r] = both;
      rest.words[r] = Half::pair(one - Half::number(both & 0xffffu), other - Half::number(both >> 16));
    }
    if constexpr (Shape::LOW_SHARED)
      low[low_index(m, w, half)] = rest;
    else if constexpr (PARTS == 2)
      UNROLL(4)
    for (int r = 0; r < 4; ++r)
      own_low[m][w][half][r] = rest.words[r];
  }

  DEVICE static int low_index(int m, int w, int half) { return (((warp() * TILES + m) * WORDS + w) * 2 + half) * LANES + lane_index(); }

  /// Adds the products with 32 inputs.
  DEVICE void multiply_word(float (&found)[TILES][GROUPS][CHAINS][4], const char *from, int w) const {
    const int word = input_part(warp()) * WORDS + w;
    UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      std::uint32_t factors[GROUPS][Exchange::FACTORS][2];
      UNROLL(8)
      for (int j = 0; j < GROUPS; ++j)
        Exchange::read(from, 8 * j + lane_index() / 4, word, part_of_lane(), half, factors[j]);
      UNROLL(16)
      for (int m = 0; m < TILES; ++m) {
        const Quad rest = low_of(m, w, half);
        UNROLL(8)
        for (int j = 0; j < GROUPS; ++j)
          multiply_fragment(found[m][j], high[m][w][half], rest.words, half, factors[j]);
      }
    }
  }

  DEVICE Quad low_of(int m, int w, int half) const {
    Quad rest{};
    if constexpr (Shape::LOW_SHARED)
      rest = low[low_index(m, w, half)];
    else if constexpr (PARTS == 2)
      UNROLL(4)
    for (int r = 0; r < 4; ++r)
      rest.words[r] = own_low[m][w][half][r];
    return rest;
  }

  DEVICE void multiply_fragment(float (&found)[CHAINS][4], const std::uint32_t (&first_half)[4], const std::uint32_t (&second_half)[4],
                                int half, const std::uint32_t (&factors)[Exchange::FACTORS][2]) const {
    constexpr int APART = CHAINS >= PRODUCTS ? 1 : 0;
    const int chain = CHAINS == 2 * PRODUCTS ? half * PRODUCTS : 0;
    Half::multiply(found[chain], first_half, factors[0], lane_index());
    if constexpr (PARTS == 2)
      Half::multiply(found[chain + APART], second_half, factors[0], lane_index());
    if constexpr (PARTS == 2 && Way::BACK)
      Half::multiply(found[chain + 2 * APART], first_half, factors[Exchange::FACTORS - 1], lane_index());
  }

  /// Groups of eight neurons are permuted, so that lanes with different samples write to different banks.
  DEVICE static int sum_index(int part, int sample, int neuron) {
    return (part * Shape::SAMPLES + sample) * Shape::NEURONS + (neuron ^ (sample >> 1 & 3) << 3);
  }
};

} // namespace snnc

#endif
