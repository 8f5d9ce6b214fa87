// Kernels of a session that are the same for every network.
#ifndef SNNC_SESSION_KERNELS_HPP
#define SNNC_SESSION_KERNELS_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace snnc {

struct SpikeLimit;

namespace kernels {

/// Packs [rows][size] numbers into bits; raises the flags of the device and of the host if a number is neither 0 nor 1.
void pack_rows(const float *numbers, int rows, int size, std::uint32_t *bits, int *flag, int *host_flag);
/// Sets numbers to NaN if one of `count` flags is raised.
void spoil(const int *flags, int count, float *numbers, int size);
/// Sets the bits (or numbers) of rows at events to 1; all others must be 0.
void mark_events(const std::uint64_t *begin, const std::uint32_t *ids, int rows, int words, bool bits, std::uint32_t *to);
/// Writes the spikes that are sent of rows [step][batch], which begin at step `first` of the sequence, and adds the number of dropped spikes
/// to `dropped` unless it is null.
void limit_rows(const std::uint32_t *spikes, int rows, int words, const SpikeLimit &limit, int first, int batch, std::uint32_t *sent,
                unsigned long long *dropped);
/// Sets adjoints [rows][size] of dropped spikes to 0.
void forget_dropped(float *adjoint, const std::uint32_t *spikes, const std::uint32_t *sent, int rows, int size);
/// Transposes a matrix [rows][columns].
void turn_numbers(const float *from, int rows, int columns, float *to);

/// Rounds numbers to the nearest finite float16 values.
void round_to_half(float *numbers, int count);

/// A batch of small copies within device memory, made in one launch.
class Moves {
public:
  Moves();
  ~Moves();
  void copy(void *to, const void *from, std::size_t words) { add(to, from, words); }
  void clear(void *to, std::size_t words) { add(to, nullptr, words); }
  /// Starts the copies; none may read what another writes.
  void start();

  /// Source (null: zeros), destination, and number of words.
  struct Move {
    std::uint32_t *to;
    const std::uint32_t *from;
    std::size_t words;
  };

private:
  void add(void *to, const void *from, std::size_t words);
  std::vector<Move> moves;
};

} // namespace kernels
} // namespace snnc

#endif
