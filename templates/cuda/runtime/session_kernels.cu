// Kernels of a session that are the same for every network.
#include "session_kernels.hpp"

#include "events.hpp"
#include "launch.hpp"
#include "learned.hpp"
#include "limits.hpp"

#include <algorithm>

namespace snnc {
namespace {

/// Maximum number of copies per launch, which are its argument.
constexpr int MAX_MOVES = 64;
struct Batch {
  kernels::Moves::Move moves[MAX_MOVES];
};

KERNEL void pack_kernel(const float *numbers, int rows, int values, std::uint32_t *bits, int *flag, int *host_flag) {
  pack(numbers, rows, values, bits, flag, host_flag, warp_of(0, grid_size(), 0));
}

KERNEL void spoil_kernel(const int *flags, int count, float *numbers, int size) { spoil_flagged(flags, count, numbers, size); }

KERNEL void mark_kernel(const std::uint64_t *begin, const std::uint32_t *ids, int rows, int words, bool bits, std::uint32_t *to) {
  mark(begin, ids, rows, words, bits, to, warp_of(0, grid_size(), 0));
}

KERNEL void turn_kernel(const float *from, int rows, int columns, float *to) { turn_weights(from, rows, columns, to); }

/// A warp processes a row.
KERNEL void limit_kernel(const std::uint32_t *spikes, int rows, int words, WHOLE_GRID SpikeLimit limit, int first, int batch,
                         std::uint32_t *sent, unsigned long long *dropped) {
  const Warp warp = warp_of(0, grid_size(), 0);
  for (int row = warp.index; row < rows; row += warp.count) {
    const std::size_t at = static_cast<std::size_t>(row) * static_cast<std::size_t>(words);
    const int gone = limit_row(spikes + at, words, limit, first + row / batch, sent + at, warp.lane);
    if (gone != 0 && dropped != nullptr && warp.lane == 0)
      add_count(dropped, gone);
  }
}

KERNEL void forget_kernel(float *adjoint, const std::uint32_t *spikes, const std::uint32_t *sent, int rows, int size) {
  const int words = whole_parts(size, 32);
  const long long all = static_cast<long long>(rows) * size;
  for (long long i = block_index() * block_size() + thread_index(); i < all; i += static_cast<long long>(grid_size()) * block_size()) {
    const long long at = i / size * words;
    if (is_dropped(spikes + at, sent + at, static_cast<int>(i % size)))
      adjoint[i] = 0.0f;
  }
}

KERNEL void round_kernel(float *numbers, int count) {
  for_each_number(count, [=](int i) { numbers[i] = nearest_half(numbers[i]); });
}

/// The blocks of a part of the grid share a copy.
KERNEL void move_kernel(WHOLE_GRID Batch batch, int count) {
  const int each = grid_size() / count;
  const kernels::Moves::Move move = batch.moves[block_index() / each];
  const std::size_t step = static_cast<std::size_t>(each * block_size());
  for (std::size_t i = static_cast<std::size_t>(block_index() % each * block_size() + thread_index()); i < move.words; i += step)
    move.to[i] = move.from == nullptr ? 0u : move.from[i];
}

int blocks() {
  static const int found = blocks_at_once(address_of(pack_kernel), 4, 0);
  return found;
}

} // namespace

namespace kernels {

void pack_rows(const float *numbers, int rows, int size, std::uint32_t *bits, int *flag, int *host_flag) {
  launch(pack_kernel, blocks(), 0, false, numbers, rows, size, bits, flag, host_flag);
}

void spoil(const int *flags, int count, float *numbers, int size) { launch(spoil_kernel, blocks(), 0, false, flags, count, numbers, size); }

void mark_events(const std::uint64_t *begin, const std::uint32_t *ids, int rows, int words, bool bits, std::uint32_t *to) {
  launch(mark_kernel, blocks(), 0, false, begin, ids, rows, words, bits, to);
}

void limit_rows(const std::uint32_t *spikes, int rows, int words, const SpikeLimit &limit, int first, int batch, std::uint32_t *sent,
                unsigned long long *dropped) {
  launch(limit_kernel, blocks(), 0, false, spikes, rows, words, limit, first, batch, sent, dropped);
}

void forget_dropped(float *adjoint, const std::uint32_t *spikes, const std::uint32_t *sent, int rows, int size) {
  launch(forget_kernel, blocks(), 0, false, adjoint, spikes, sent, rows, size);
}

void turn_numbers(const float *from, int rows, int columns, float *to) { launch(turn_kernel, blocks(), 0, false, from, rows, columns, to); }

void round_to_half(float *numbers, int count) { launch(round_kernel, blocks(), 0, false, numbers, count); }

Moves::Moves() = default;
Moves::~Moves() = default;

void Moves::add(void *to, const void *from, std::size_t words) {
  if (words > 0)
    moves.push_back({static_cast<std::uint32_t *>(to), static_cast<const std::uint32_t *>(from), words});
}

void Moves::start() {
  constexpr std::size_t EACH = 4096;
  for (std::size_t first = 0; first < moves.size(); first += MAX_MOVES) {
    Batch batch{};
    const int count = static_cast<int>(std::min<std::size_t>(MAX_MOVES, moves.size() - first));
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
