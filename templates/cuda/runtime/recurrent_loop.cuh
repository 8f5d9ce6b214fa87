// The time loop of a recurrent core: the neurons of each block of a cluster, the exchange in a step, and the steps of the neurons.
//
// A block multiplies what all neurons sent DELAY steps ago by the weights of its own neurons, which it keeps on chip (Shape::Products). Sums
// are added in shared memory; then a lane runs the step of a neuron of a sample and sends the result to all blocks. There is no other cluster
// barrier: arriving words are counted. Blocks that do not form a cluster exchange through memory instead, with a barrier per step.
#ifndef SNNC_RECURRENT_LOOP_CUH
#define SNNC_RECURRENT_LOOP_CUH

#include "recurrent_memory.cuh"

namespace snnc {

/// Layout of a block's shared memory, in bytes, and the number of slots of the exchange: enough that a block never overwrites values that
/// another still reads. If these do not fit, there is one slot for a delay of 1, and blocks signal when they have read it (with a longer
/// delay, a block could signal twice before another signals once). BLOCKS: blocks that write to this one.
template <class Way, int BLOCKS, int SLOT_BYTES, int SUM_BYTES, int WEIGHT_BYTES> struct SharedRoom {
  static constexpr int MOST = 232448, BARRIERS = (2 * Way::DELAY + 2) * 16, SUMS = BARRIERS, WEIGHTS = SUMS + SUM_BYTES,
                       EXCHANGE = WEIGHTS + WEIGHT_BYTES;
  static constexpr bool CREDITS = BLOCKS > 1 && Way::DELAY == 1 && EXCHANGE + 2 * Way::DELAY *SLOT_BYTES > MOST;
  static constexpr int SLOTS = BLOCKS == 1 || CREDITS ? Way::DELAY : 2 * Way::DELAY;
  static constexpr int BYTES = EXCHANGE + SLOTS * SLOT_BYTES;
};

template <class Way, class Shape, class Clock = NoClock> class RecurrentLoop {
public:
  using Net = typename Way::Net;

  DEVICE RecurrentLoop(const Net &net_of, const Run &run_of)
      : net(net_of), run(run_of), rank(Shape::OVER_MEMORY  ? block_index() % Shape::BLOCKS
                                       : Shape::BLOCKS > 1 ? cluster_rank()
                                                           : 0),
        first(block_index() / Shape::BLOCKS * Shape::SAMPLES), warp(thread_index() / LANES), lane(lane_index()),
        barriers(reinterpret_cast<Mbarrier *>(shared_memory())), sums(reinterpret_cast<float *>(shared_memory() + Room::SUMS)) {}

  DEVICE void go() {
    if constexpr (Shape::OVER_MEMORY) {
      // A team processes several groups of samples, one after another.
      products.load(net, rank, sums, shared_memory() + Room::WEIGHTS);
      UNROLL(1)
      for (; first < run.batch; first += grid_size() / Shape::BLOCKS * Shape::SAMPLES) {
        begin_exchange();
        take_steps();
        given_before += most(0, run.steps - Way::DELAY);
      }
    } else {
      begin_exchange();
      products.load(net, rank, sums, shared_memory() + Room::WEIGHTS);
      take_steps();
    }
    clock.end();
    // Other blocks must not write to a block that has ended.
    if constexpr (CLUSTER)
      sync_cluster();
  }

private:
  static constexpr bool CLUSTER = Shape::BLOCKS > 1 && !Shape::OVER_MEMORY;
  using Neuron = typename Way::Neuron;
  using Given = typename Neuron::Given;
  using Exchange = typename Shape::Exchange;
  using Units = typename Shape::Own;
  using Room = typename Shape::Room;
  using Ring = MemoryRing<Exchange, Units, Way::DELAY>;
  static constexpr int UNITS = Units::OF_WARP;
  /// Whether weights fill the registers.
  static constexpr bool WIDE = Shape::REGISTERS > 32;

  const Net &net;
  const Run &run;
  const int rank;
  int first;
  const int warp, lane;
  /// Number of messages of earlier groups of samples.
  int given_before = 0;
  Mbarrier *const barriers;
  float *const sums;
  typename Shape::Products products;
  Neuron neurons[UNITS];
  Given ahead[UNITS];
  Clock clock;

  DEVICE void take_steps() {
    begin_neurons();
    if constexpr (CLUSTER)
      sync_cluster();
    else
      sync_block();
    UNROLL(1)
    for (int n = 0; n < run.steps; ++n)
      turn(n);
    for_each_unit([&](int i, int b, int neuron, bool live) {
      if (live)
        neurons[i].end(net, b, neuron);
    });
  }

  DEVICE Ring ring() const { return Ring(run.counters, block_index() / Shape::BLOCKS, grid_size() / Shape::BLOCKS, rank); }

  template <class Call> DEVICE void for_each_unit(const Call &call) {
    // If weights fill the registers, addresses are recomputed in each iteration.
    const int own_warp = WIDE ? not_known(thread_index()) / LANES : warp, lane = WIDE ? not_known(lane_index()) : this->lane;
    UNROLL(16)
    for (int i = 0; i < UNITS; ++i) {
      const int unit = Units::index(own_warp, i), b = first + Units::sample(unit),
                neuron = (rank * Shape::CHUNKS + Units::chunk(unit)) * 32 + lane;
      call(i, b, neuron, Units::exists(unit) && b < run.batch && neuron < Way::SIZE);
    }
  }

  /// Returns the slot that iteration n reads: the one written in iteration n - DELAY.
  DEVICE static int slot_of(int n) { return (n + Way::DELAY) % Room::SLOTS; }
  DEVICE char *slot(int n) const { return shared_memory() + Room::EXCHANGE + slot_of(n) * Exchange::SLOT_BYTES; }
  DEVICE Mbarrier *free_barrier() const { return barriers + 2 * Way::DELAY; }

  DEVICE void begin_exchange() {
    for (int i = thread_index(); i < Room::SLOTS * Exchange::SLOT_BYTES / 4; i += block_size())
      reinterpret_cast<std::uint32_t *>(shared_memory() + Room::EXCHANGE)[i] = 0;
    sync_block();
    UNROLL(1)
    for (int n = -Way::DELAY; n < 0; ++n)
      Exchange::template fill<Way>(net, run, slot(n), n, first);
    if constexpr (CLUSTER) {
      if (thread_index() == 0) {
        for (int i = 0; i < Room::SLOTS; ++i)
          begin_barrier(barriers + i, 1);
        begin_barrier(free_barrier(), Shape::BLOCKS);
        publish_barriers();
        for (int i = 0; i < Room::SLOTS; ++i)
          expect_bytes(barriers + i, Exchange::SENT_BYTES);
      }
    }
  }

  DEVICE void begin_neurons() {
    for_each_unit([&](int i, int b, int neuron, bool live) {
      if (live)
        neurons[i].begin(net, b, neuron);
    });
    read_ahead(0);
  }

  DEVICE void read_ahead(int n) {
    if (n < run.steps)
      for_each_unit([&](int i, int b, int neuron, bool live) {
        if (live)
          ahead[i] = neurons[i].read(net, Way::step(run, n), b, neuron);
      });
  }

  DEVICE void turn(int n) {
    Given given[UNITS];
    UNROLL(16)
    for (int i = 0; i < UNITS; ++i)
      given[i] = ahead[i];
    if constexpr (!WIDE)
      read_ahead(n + 1);
    if (Shape::BLOCKS > 1 && n >= Way::DELAY)
      await(n - Way::DELAY);
    clock.part(0);
    if constexpr (!Way::BACK && Way::Loop::LIMITED)
      limit(n - Way::DELAY);
    products.multiply(slot(n - Way::DELAY), sums);
    sync_block();
    if (Room::CREDITS && thread_index() < Shape::BLOCKS)
      arrive_at(place_in(own_place(free_barrier()), thread_index()));
    clock.part(1);
    step(n, given);
    clock.part(2);
    // With a delay of 1, a block has already waited for all of its warps; otherwise, sums of the next iteration could be written too early.
    if (!CLUSTER || Way::DELAY > 1)
      sync_block();
    if constexpr (Shape::OVER_MEMORY)
      if (n + Way::DELAY < run.steps)
        ring().give(slot(n), given_before + n);
  }

  /// Reduces the slot of iteration n to the spikes that are sent; those before the segment have already been chosen.
  DEVICE void limit(int n) {
    if (n < 0)
      return;
    for (int s = warp; s < Shape::SAMPLES; s += Shape::WARPS) {
      std::uint32_t *row = reinterpret_cast<std::uint32_t *>(slot(n)) + s * Exchange::ROW;
      limit_row(row, parts_of(Way::SIZE, 32), Way::Loop::limit(net), Way::Loop::first(net) + n, row, lane);
    }
    sync_block();
  }

  /// Waits for the words that all blocks sent in iteration n.
  DEVICE void await(int n) {
    if constexpr (Shape::OVER_MEMORY)
      return ring().take(slot(n), given_before + n);
    Mbarrier *barrier = barriers + slot_of(n);
    wait_for(barrier, n / Room::SLOTS);
    if (thread_index() == 0)
      expect_bytes(barrier, Exchange::SENT_BYTES);
  }

  /// Runs one step of the warp's neurons, and sends their results.
  DEVICE void step(int n, const Given (&given)[UNITS]) {
    const int t = Way::step(run, n);
    std::uint32_t words[UNITS], bits[UNITS][Neuron::OUTPUTS];
    for_each_unit([&](int i, int b, int neuron, bool live) {
      float outputs[Neuron::OUTPUTS] = {};
      if (live) {
        float more[Neuron::PORTS] = {};
        more[Way::IN] = products.sum(sums, Units::sample(Units::index(warp, i)), Units::chunk(Units::index(warp, i)) * 32 + lane);
        if constexpr (Way::BACK && Way::Loop::MASKED)
          more[Way::IN] = Way::Loop::dropped(net, t, b, neuron) ? 0.0f : more[Way::IN];
        neurons[i].step(net, t, b, neuron, given[i], more, outputs);
      }
      if constexpr (Way::BACK) {
        words[i] = Exchange::word_of(outputs[Way::OUT], lane);
      } else {
        UNROLL(8)
        for (int o = 0; o < Neuron::OUTPUTS; ++o)
          bits[i][o] = ballot(outputs[o] != 0.0f);
        words[i] = bits[i][Way::OUT];
      }
    });
    // Loaded later than above, so that the values of this and the next iteration are not in registers at the same time.
    if constexpr (WIDE)
      read_ahead(n + 1);
    if (n + Way::DELAY < run.steps) {
      if constexpr (Room::CREDITS)
        wait_for(free_barrier(), n);
      Exchange::send_units(words, own_place(slot(n)), own_place(barriers + slot_of(n)), rank, warp, WIDE ? not_known(lane) : lane);
    }
    if constexpr (!Way::BACK)
      for_each_unit([&](int i, int b, int neuron, bool) {
        const int word = neuron / 32;
        if (lane == 0 && Units::exists(Units::index(warp, i)) && b < run.batch && word < parts_of(Way::SIZE, 32))
          UNROLL(8)
        for (int o = 0; o < Neuron::OUTPUTS; ++o)
          Neuron::store_word(net, o, t, b, word, bits[i][o]);
      });
  }
};

template <class Way, class Shape, class Clock = NoClock> KERNEL_OF(Shape::THREADS, 1)
void recurrent_kernel(WHOLE_GRID typename Way::Net net, WHOLE_GRID Run run) {
  // Shapes that the device cannot run are never launched, so their kernels are empty.
  constexpr bool CLUSTERS_FIT = Shape::BLOCKS == 1 || Shape::LINK == Link::MEMORY || COMPILES_CLUSTERS == (Shape::LINK == Link::CLUSTER);
  if constexpr ((ON_HOST || CLUSTERS_FIT) && (!Shape::TENSOR_CORES || COMPILES_FRAGMENTS))
    RecurrentLoop<Way, Shape, Clock>(net, run).go();
}

} // namespace snnc

#endif
