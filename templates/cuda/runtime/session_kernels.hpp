// What a session asks of the device that is the same for every network.
#ifndef SNNC_SESSION_KERNELS_HPP
#define SNNC_SESSION_KERNELS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace snnc {

struct SpikeLimit;

namespace kernels {

/// Packs [rows][size] numbers into bits; both flags, the device's and the host's, are raised where one is neither 0 nor 1.
void pack_rows(const float *numbers, int rows, int size, std::uint32_t *bits, int *flag, int *told);
/// Makes numbers NaN where one of `count` flags is raised.
void spoil(const int *flags, int count, float *numbers, int size);
/// Sets the bits (or numbers) of rows of events to 1; those of all others are 0 already.
void mark_events(const std::uint64_t *begin, const std::uint32_t *ids, int rows, int words, bool bits, std::uint32_t *to);
/// Writes what is sent of rows [step][batch] of spikes, from step `first` of the sequence on, and adds to `dropped`, if it is not null,
/// how many spikes are not.
void limit_rows(const std::uint32_t *spikes, int rows, int words, const SpikeLimit &limit, int first, int batch, std::uint32_t *sent,
                unsigned long long *dropped);
/// Makes adjoints [rows][size] 0 where a spike was dropped.
void forget_dropped(float *adjoint, const std::uint32_t *spikes, const std::uint32_t *sent, int rows, int size);
/// Copies a matrix [rows][columns] turned round.
void turn_numbers(const float *from, int rows, int columns, float *to);

/// Rounds numbers to the nearest float16 numbers, those beyond them to the largest.
void round_to_half(float *numbers, int count);

/// Copies of few numbers from place to place on the device, all in one launch.
class Moves {
public:
  void copy(void *to, const void *from, std::size_t words) { add(to, from, words); }
  void clear(void *to, std::size_t words) { add(to, nullptr, words); }
  /// Starts them; none may read what another writes.
  void start();

  /// From where (null: zeros), to where, and how many words.
  struct Move {
    std::uint32_t *to;
    const std::uint32_t *from;
    std::size_t words;
  };

private:
  void add(void *to, const void *from, std::size_t words) {
    if (words > 0)
      moves.push_back({static_cast<std::uint32_t *>(to), static_cast<const std::uint32_t *>(from), words});
  }
  std::vector<Move> moves;
};

} // namespace kernels
} // namespace snnc

#endif
