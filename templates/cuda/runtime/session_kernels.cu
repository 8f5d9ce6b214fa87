// What a session asks of the device that is the same for every network.
#include "session_kernels.hpp"

#include "events.hpp"
#include "launch.hpp"
#include "learned.hpp"

#include <algorithm>

namespace snnc {
namespace {

/// Moves of one launch: they are its argument.
constexpr int MOST_MOVES = 64;
struct Batch {
  kernels::Moves::Move moves[MOST_MOVES];
};

KERNEL void pack_kernel(const float *numbers, int rows, int values, std::uint32_t *bits, int *flag, int *told) {
  pack(numbers, rows, values, bits, flag, told, warp_of(0, grid_size(), 0));
}

KERNEL void spoil_kernel(const int *flags, int count, float *numbers, int size) { spoil_flagged(flags, count, numbers, size); }

KERNEL void mark_kernel(const std::uint64_t *begin, const std::uint32_t *ids, int rows, int words, bool bits, std::uint32_t *to) {
  mark(begin, ids, rows, words, bits, to, warp_of(0, grid_size(), 0));
}

KERNEL void turn_kernel(const float *from, int rows, int columns, float *to) { turn_weights(from, rows, columns, to); }

/// The blocks of a part of the grid share a move.
KERNEL void move_kernel(WHOLE_GRID Batch batch, int count) {
  const int each = grid_size() / count;
  const kernels::Moves::Move move = batch.moves[block_index() / each];
  const std::size_t step = static_cast<std::size_t>(each * block_size());
  for (std::size_t i = static_cast<std::size_t>(block_index() % each * block_size() + thread_index()); i < move.words; i += step)
    move.to[i] = move.from == nullptr ? 0u : move.from[i];
}

int blocks() {
  static const int found = blocks_at_once(pack_kernel, 4, 0);
  return found;
}

} // namespace

namespace kernels {

void pack_rows(const float *numbers, int rows, int size, std::uint32_t *bits, int *flag, int *told) {
  launch(pack_kernel, blocks(), 0, false, numbers, rows, size, bits, flag, told);
}

void spoil(const int *flags, int count, float *numbers, int size) { launch(spoil_kernel, blocks(), 0, false, flags, count, numbers, size); }

void mark_events(const std::uint64_t *begin, const std::uint32_t *ids, int rows, int words, bool bits, std::uint32_t *to) {
  launch(mark_kernel, blocks(), 0, false, begin, ids, rows, words, bits, to);
}

void turn_numbers(const float *from, int rows, int columns, float *to) { launch(turn_kernel, blocks(), 0, false, from, rows, columns, to); }

void Moves::start() {
  constexpr std::size_t EACH = 4096;
  for (std::size_t first = 0; first < moves.size(); first += MOST_MOVES) {
    Batch batch{};
    const int count = static_cast<int>(std::min<std::size_t>(MOST_MOVES, moves.size() - first));
    std::size_t most = 0;
    for (int i = 0; i < count; ++i) {
      batch.moves[i] = moves[first + static_cast<std::size_t>(i)];
      most = std::max(most, batch.moves[i].words);
    }
    const int each = static_cast<int>(std::min<std::size_t>(std::max<std::size_t>(1, most / EACH), 64));
    launch_blocks(move_kernel, each * count, threads_of_block(), 0, batch, count);
  }
  moves.clear();
}

} // namespace kernels
} // namespace snnc
