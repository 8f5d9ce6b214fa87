// The recurrent core in float32 without tensor cores: a cluster of blocks processes one sample and keeps all weights in registers.
//
// A warp has some inputs, and a lane has one neuron of each chunk of 32 neurons of the block. In the forward pass, inputs that did not fire
// are skipped four at a time. Sums have a fixed order (inputs of a warp, then warps), so results have the same bits on any number of
// multiprocessors; a different number of blocks or warps changes the order.
#ifndef SNNC_RECURRENT_FLOAT32_CUH
#define SNNC_RECURRENT_FLOAT32_CUH

#include "recurrent_loop.cuh"

#include <type_traits>

namespace snnc {

template <class Way, class Shape> class Float32Products;

/// Compile-time division of the work: a cluster of BLOCKS blocks with WARPS warps processes a sample.
template <class Way, int BLOCKS_OF, int WARPS_OF> struct Float32Shape {
  static constexpr int BLOCKS = BLOCKS_OF, WARPS = WARPS_OF, THREADS = WARPS * LANES, SAMPLES = 1;
  static constexpr Link LINK = Link::CLUSTER;
  static constexpr bool OVER_MEMORY = false;
  static constexpr int CHUNKS = parts_of(parts_of(Way::SIZE, 32), BLOCKS), NEURONS = CHUNKS * 32;
  /// Inputs per warp, a multiple of four, and inputs of all warps.
  static constexpr int OWN_INPUTS = parts_of(parts_of(Way::SIZE, WARPS), 4) * 4, INPUTS = OWN_INPUTS * WARPS;

  using Own = Units<BLOCKS, CHUNKS, SAMPLES, WARPS>;
  using Exchange = std::conditional_t<Way::BACK, FloatExchange<Own, INPUTS>, SpikeExchange<Own, 1, INPUTS / 32 + 2>>;

  static constexpr int MAX_REGISTERS = 88, REGISTERS = CHUNKS * OWN_INPUTS;
  using Room = SharedRoom<Way, BLOCKS, Exchange::SLOT_BYTES, WARPS * NEURONS * 4, 0>;
  using Products = Float32Products<Way, Float32Shape>;
  static constexpr bool TENSOR_CORES = false;
  static constexpr bool FITS = Room::BYTES <= Room::MOST && REGISTERS <= MAX_REGISTERS && CHUNKS <= WARPS;
};

/// The weights of a block, in registers, and their products.
template <class Way, class Shape> class Float32Products {
public:
  DEVICE void load(const typename Way::Net &net, int rank, float *, char *) {
    const float *all = Way::Loop::weights(net);
    UNROLL(96)
    for (int i = 0; i < INPUTS; ++i)
      UNROLL(4)
    for (int j = 0; j < CHUNKS; ++j) {
      const int input = warp() * INPUTS + i, neuron = rank * Shape::NEURONS + j * 32 + lane_index();
      weights[i][j] = input < Way::SIZE && neuron < Way::SIZE ? Way::weight(all, neuron, input) : 0.0f;
    }
  }

  DEVICE void multiply(const char *from, float *sums) const {
    float found[CHUNKS] = {};
    UNROLL(24)
    for (int i = 0; i < INPUTS; i += 4)
      if constexpr (Way::BACK)
        add_numbers(found, i, reinterpret_cast<const float *>(from) + warp() * INPUTS + i);
      else
        add_spikes(found, i, Shape::Exchange::bits(from, 0, warp() * INPUTS + i / 32 * 32) >> (i % 32));
    UNROLL(4)
    for (int j = 0; j < CHUNKS; ++j)
      sums[warp() * Shape::NEURONS + j * 32 + lane_index()] = found[j];
  }

  /// Returns the sum over all inputs; to be called after a block barrier.
  DEVICE float sum(const float *sums, int, int neuron) const {
    // Two accumulators, so that an addition need not wait for the previous one.
    float even = 0, odd = 0;
    UNROLL(16)
    for (int i = 0; i < Shape::WARPS; i += 2) {
      even += sums[i * Shape::NEURONS + neuron];
      odd += sums[(i + 1) * Shape::NEURONS + neuron];
    }
    return even + odd;
  }

private:
  static constexpr int CHUNKS = Shape::CHUNKS, INPUTS = Shape::OWN_INPUTS;
  float weights[INPUTS][CHUNKS];

  DEVICE static int warp() { return thread_index() / LANES; }

  DEVICE void add_spikes(float (&found)[CHUNKS], int i, std::uint32_t bits) const {
    if ((bits & 15u) == 0)
      return;
    UNROLL(4)
    for (int k = 0; k < 4; ++k)
      UNROLL(4)
    for (int j = 0; j < CHUNKS; ++j)
      found[j] += (bits >> k & 1u) != 0 ? weights[i + k][j] : 0.0f;
  }

  DEVICE void add_numbers(float (&found)[CHUNKS], int i, const float *numbers) const {
    const Quad four = *reinterpret_cast<const Quad *>(numbers);
    UNROLL(4)
    for (int k = 0; k < 4; ++k)
      UNROLL(4)
    for (int j = 0; j < CHUNKS; ++j)
      found[j] = fmaf(number_of(four.words[k]), weights[i + k][j], found[j]);
  }
};

} // namespace snnc

#endif
