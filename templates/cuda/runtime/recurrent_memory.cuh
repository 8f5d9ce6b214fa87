// Exchange between blocks that do not form a cluster: through memory, with a count of the blocks that have written.
//
// A block that writes the results of an iteration has waited for all results of DELAY iterations before. So all blocks have read the results
// of 2 DELAY iterations before, and a ring of 2 DELAY slots suffices.
#ifndef SNNC_RECURRENT_MEMORY_CUH
#define SNNC_RECURRENT_MEMORY_CUH

#include "recurrent_exchange.cuh"

namespace snnc {

/// Memory shared by the blocks of a team: a counter, and a ring of slots, in which a block's words of all samples are contiguous.
template <class Exchange, class Units, int DELAY> class MemoryRing {
public:
  static constexpr int ROW_WORDS = Units::CHUNKS * Exchange::CHUNK, OWN_WORDS = Units::SAMPLES * ROW_WORDS, SLOTS = 2 * DELAY,
                       WORDS = parts_of(SLOTS * Units::BLOCKS * OWN_WORDS, COUNTER_WORDS) * COUNTER_WORDS;

  /// `memory`: counters of all teams, initially 0, then their rings.
  DEVICE MemoryRing(unsigned *memory, int team, int teams, int own_rank)
      : counter(memory + team * COUNTER_WORDS), ring(memory + teams * COUNTER_WORDS + static_cast<std::size_t>(team) * WORDS),
        rank(own_rank) {}

  /// Publishes the block's own words of a slot in shared memory, which all of its threads have written, as message `number` of the team.
  DEVICE void give(const char *slot, int number) const {
    std::uint32_t *to = place(number) + rank * OWN_WORDS;
    for (int i = thread_index(); i < OWN_WORDS; i += block_size())
      to[i] = reinterpret_cast<const std::uint32_t *>(slot)[at(rank, i)];
    sync_block();
    if (thread_index() == 0)
      count_up(counter);
  }

  /// Copies message `number` of all blocks to a slot; called by all threads.
  DEVICE void take(char *slot, int number) const {
    if (thread_index() == 0)
      wait_for_count(counter, static_cast<unsigned>(Units::BLOCKS) * (static_cast<unsigned>(number) + 1));
    sync_block();
    const std::uint32_t *from = place(number);
    if constexpr (ROW_WORDS % 4 == 0 && Exchange::ROW % 4 == 0) {
      UNROLL(8)
      for (int i = thread_index() * 4; i < Units::BLOCKS * OWN_WORDS; i += block_size() * 4)
        copy_four_fresh(reinterpret_cast<std::uint32_t *>(slot) + at(i / OWN_WORDS, i % OWN_WORDS), from + i);
    } else {
      for (int i = thread_index(); i < Units::BLOCKS * OWN_WORDS; i += block_size())
        reinterpret_cast<std::uint32_t *>(slot)[at(i / OWN_WORDS, i % OWN_WORDS)] = load_fresh(from + i);
    }
    sync_block();
  }

private:
  unsigned *counter;
  std::uint32_t *ring;
  int rank;

  DEVICE std::uint32_t *place(int number) const { return ring + number % SLOTS * (Units::BLOCKS * OWN_WORDS); }
  /// Returns the position in a slot of word i of a block.
  DEVICE static int at(int block, int i) { return i / ROW_WORDS * Exchange::ROW + block * ROW_WORDS + i % ROW_WORDS; }
};

} // namespace snnc

#endif
