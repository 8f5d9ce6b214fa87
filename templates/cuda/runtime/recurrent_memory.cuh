// How blocks that are no cluster hand each other what their neurons gave: through memory, with a count of the blocks that have written.
//
// A block that writes what it gave in some turn has waited for what all gave DELAY turns before, so all have read what they gave 2 DELAY turns
// before: the ring has as many slots.
#ifndef SNNC_RECURRENT_MEMORY_CUH
#define SNNC_RECURRENT_MEMORY_CUH

#include "recurrent_exchange.cuh"

namespace snnc {

/// Words between the counters of teams: they lie in different lines of the caches.
constexpr int COUNTER_WORDS = 32;

/// What the blocks of a team share in memory: a counter, and a ring of slots, in which a block's words of all samples lie together.
template <class Exchange, class Units, int DELAY> class MemoryRing {
public:
  static constexpr int ROW_WORDS = Units::CHUNKS * Exchange::CHUNK, OWN_WORDS = Units::SAMPLES * ROW_WORDS, SLOTS = 2 * DELAY,
                       WORDS = parts_of(SLOTS * Units::BLOCKS * OWN_WORDS, COUNTER_WORDS) * COUNTER_WORDS;

  /// `memory`: counters of all teams, 0 at first, then their rings.
  DEVICE MemoryRing(unsigned *memory, int team, int teams, int own_rank)
      : counter(memory + team * COUNTER_WORDS), ring(memory + teams * COUNTER_WORDS + static_cast<std::size_t>(team) * WORDS),
        rank(own_rank) {}

  /// Hands over the block's own words of a slot in shared memory, which all of its threads have written: those of the team's message `number`.
  DEVICE void give(const char *slot, int number) const {
    std::uint32_t *to = place(number) + rank * OWN_WORDS;
    for (int i = thread_index(); i < OWN_WORDS; i += block_size())
      to[i] = reinterpret_cast<const std::uint32_t *>(slot)[at(rank, i)];
    sync_block();
    if (thread_index() == 0)
      count_up(counter);
  }

  /// Takes message `number` of all blocks into a slot, for all threads.
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
  /// The word of a slot in shared memory that is word i of a block's own.
  DEVICE static int at(int block, int i) { return i / ROW_WORDS * Exchange::ROW + block * ROW_WORDS + i % ROW_WORDS; }
};

} // namespace snnc

#endif
