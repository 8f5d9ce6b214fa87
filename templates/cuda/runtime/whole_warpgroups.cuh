// Products over a whole sequence for sm_90: tiles and factors as in whole_rows.cuh and whole_gradients.cuh, multiplied by warpgroups.
//
// The products of a warpgroup run while its warps build the next fragments; the two groups of a block alternate on the tensor cores.
#ifndef SNNC_WHOLE_WARPGROUPS_CUH
#define SNNC_WHOLE_WARPGROUPS_CUH

#include "warpgroups.cuh"
#include "whole_gradients.cuh"
#include "whole_rows.cuh"

namespace snnc {

/// Depths per turn of a gradient product, and buffers of deltas: one is read, one is filled, and one may still be read by the other group.
constexpr int TURN_ROWS = 64, TURN_BUFFERS = 3;
/// Steps per turn of a product of rows: fragments of spikes need few registers. Buffers: two are read, two are being loaded.
ANYWHERE constexpr int turn_steps(bool spikes) { return spikes ? 2 : 1; }
constexpr int ROW_BUFFERS = 4;

ANYWHERE constexpr std::size_t group_row_shared(int parts, bool spikes) {
  return static_cast<std::size_t>(ROW_BUFFERS * turn_steps(spikes) * parts * PLANE_BYTES);
}
ANYWHERE constexpr std::size_t group_gradient_shared(int parts) {
  return static_cast<std::size_t>(TURN_BUFFERS * turned_bytes(parts, GROUP_COLUMNS, TURN_ROWS));
}

#if SNNC_HAS_WARPGROUPS

using GroupSums = Sums<GroupShare>;

/// Starts the products of 16 depths. `part_begins`: the sums of parts are overwritten.
template <class Half, int LEFT, int RIGHT, bool TURNED, bool APART>
DEVICE void multiply_parts(GroupSums &sums, const std::uint32_t (&left)[LEFT][4], Place16 right, int plane, int group, bool &part_begins) {
  constexpr int MOST = LEFT > RIGHT ? LEFT : RIGHT;
  UNROLL(3)
  for (int order = MOST - 1; order >= 0; --order)
    UNROLL(3)
  for (int p = 0; p < RIGHT; ++p) {
    const int q = order - p;
    if (q < 0 || q >= LEFT)
      continue;
    if (APART && order == 0) {
      multiply_group<Half, TURNED>(sums.kept[0], left[q], right + p * plane, group, true);
    } else {
      multiply_group<Half, TURNED>(sums.part[0], left[q], right + p * plane, group, !part_begins);
      part_begins = false;
    }
  }
}

/// Accumulates the sums of parts after products have finished; the next product overwrites them.
DEVICE void keep_parts(GroupSums &sums) {
  UNROLL(16)
  for (int n = 0; n < GroupSums::ACROSS; ++n)
    UNROLL(4)
  for (int i = 0; i < 4; ++i)
    sums.kept[0][n][i] += sums.part[0][n][i];
}

/// The fragments of a turn.
template <class Left, int STEPS> struct TurnFragments {
  std::uint32_t pairs[2 * STEPS][Left::PARTS][4];

  DEVICE void make(Left &left, int first_step) {
    UNROLL(2)
    for (int s = 0; s < STEPS; ++s) {
      left.begin(first_step + s);
      UNROLL(2)
      for (int half = 0; half < 2; ++half)
        UNROLL(3)
      for (int p = 0; p < Left::PARTS; ++p)
        UNROLL(4)
      for (int i = 0; i < 4; ++i)
        pairs[2 * s + half][p][i] = left.pairs[half][p][0][i];
    }
  }
};

/// Copies the weights of a turn, which are contiguous.
template <int BYTES> DEVICE void fetch_turn(Place16 to, const char *from) {
  UNROLL(8)
  for (int i = thread_index() * 16; i < BYTES; i += PRODUCT_THREADS * 16)
    copy_later(to + i, from + i);
}

/// Like multiply_rows, for tiles of GROUP_COLUMNS columns. `turns`: number of turns of all weights.
template <class Left, int RIGHT> PRODUCT_KERNEL void multiply_rows_by_groups(WHOLE_GRID typename Left::Rows rows, const char *planes,
                                                                             int turns, WHOLE_GRID RowResults results,
                                                                             WHOLE_GRID TileOrder order) {
  constexpr bool APART = Left::EXACT;
  constexpr int STEPS = turn_steps(APART), BYTES = STEPS * RIGHT * PLANE_BYTES, KEEP_EACH = Left::PARTS > 2 ? 1 : 4;
  const int lane = lane_index(), warp = thread_index() / LANES;
  int down, across;
  order.tile(block_index(), down, across);
  const char *from = planes + static_cast<std::size_t>(across) * static_cast<std::size_t>(turns) * BYTES;
  const Place16 shared = place_of(shared_memory());
  UNROLL(2)
  for (int turn = 0; turn < 2; ++turn) {
    if (turn < turns)
      fetch_turn<BYTES>(shared + turn * BYTES, from + static_cast<std::size_t>(turn) * BYTES);
    end_of_copies();
  }
  const long long first_row = static_cast<long long>(down) * TILE_ROWS + warp * 16;
  Left left(rows, first_row, lane);
  GroupSums sums;
  sums.clear();
  bool part_begins = false;
  TurnFragments<Left, STEPS> fragments[2];
  fragments[0].make(left, 0);
  const auto take_turn = [&](int turn, const TurnFragments<Left, STEPS> &now, TurnFragments<Left, STEPS> &next) {
    wait_for_copies<1>();
    show_stored();
    sync_block();
    const Place16 right = shared + turn % ROW_BUFFERS * BYTES;
    begin_products();
    UNROLL(4)
    for (int half = 0; half < 2 * STEPS; ++half)
      multiply_parts<typename Left::Half, Left::PARTS, RIGHT, false, APART>(
          sums, now.pairs[half], right + half / 2 * (RIGHT * PLANE_BYTES) + half % 2 * (2 * MATRIX_BYTES), PLANE_BYTES, GROUP_BYTES,
          part_begins);
    end_of_products();
    // The buffer of the turn before the last can be filled: both groups have finished its products.
    if (turn + 2 < turns)
      fetch_turn<BYTES>(shared + (turn + 2) % ROW_BUFFERS * BYTES, from + static_cast<std::size_t>(turn + 2) * BYTES);
    end_of_copies();
    if (!APART && turn % KEEP_EACH == KEEP_EACH - 1) {
      wait_for_products<0>();
      keep_parts(sums);
      part_begins = true;
    } else {
      wait_for_products<1>();
    }
    next.make(left, (turn + 1) * STEPS);
  };
  UNROLL(1)
  for (int turn = 0; turn < turns; turn += 2) {
    take_turn(turn, fragments[0], fragments[1]);
    if (turn + 1 < turns)
      take_turn(turn + 1, fragments[1], fragments[0]);
  }
  wait_for_products<0>();
  if (!APART && !part_begins)
    keep_parts(sums);
  results.put_all(sums, first_row, across * GROUP_COLUMNS);
}

/// Fragments of 16 neurons of a spike source in TURN_ROWS rows.
class GroupSpikes {
public:
  DEVICE GroupSpikes(const SpikeRows &of, int first_input) : rows(of), index(first_input / 32), upper(first_input / 16 % 2) {}

  DEVICE void fetch(long long first_row) {
    UNROLL(2)
    for (int i = 0; i < 2; ++i)
      next[i] = rows.word(first_row + i * LANES + lane_index(), index);
  }

  DEVICE void make(std::uint32_t (&pairs)[TURN_ROWS / 16][1][4]) const {
    const int lane = lane_index(), turn = 14 - lane / 4;
    UNROLL(2)
    for (int i = 0; i < 2; ++i) {
      // Combines two consecutive rows, with the bits of a neuron 16 apart.
      const std::uint32_t own = upper ? next[i] >> 16 : next[i] & 0xffffu, pair = own | shuffle_xor(own, 1) << 16;
      UNROLL(2)
      for (int half = 0; half < 2; ++half)
        UNROLL(2)
      for (int later = 0; later < 2; ++later) {
        const std::uint32_t found = rotate_left(shuffle(pair, half * 16 + later * 8 + lane % 4 * 2), turn);
        pairs[2 * i + half][0][2 * later] = found & TWO_PAIR;
        pairs[2 * i + half][0][2 * later + 1] = rotate_left(found, 24) & TWO_PAIR;
      }
    }
  }

private:
  const SpikeRows &rows;
  int index;
  bool upper;
  std::uint32_t next[2];
};

/// Like multiply_turned, for a spike source and tiles of GROUP_COLUMNS columns.
template <class Number, int RIGHT> PRODUCT_KERNEL void multiply_turned_by_groups(WHOLE_GRID SpikeRows source,
                                                                                 WHOLE_GRID NumberRows<Number> deltas, int inputs,
                                                                                 int outputs, int rows, WHOLE_GRID Slices to) {
  constexpr int BUFFER = turned_bytes(RIGHT, GROUP_COLUMNS, TURN_ROWS), KEEP_EACH = 4, HALVES = TURN_ROWS / 16;
  const int warp = thread_index() / LANES, down = whole_parts(inputs, TILE_ROWS), tiles = down * whole_parts(outputs, GROUP_COLUMNS);
  const int slice = block_index() / tiles, tile = block_index() % tiles, first_input = tile % down * TILE_ROWS,
            first_output = tile / down * GROUP_COLUMNS;
  const int begin = to.first(slice, rows), end = to.first(slice + 1, rows), turns = whole_parts(end - begin, TURN_ROWS);
  SpikeRows own_source = source;
  NumberRows<Number> own_deltas = deltas;
  own_source.end(end);
  own_deltas.end(end);
  char *memory = shared_memory();
  const Place16 shared = place_of(memory);
  const int input = first_input + warp * 16;
  GroupSpikes spikes(own_source, input);
  TurnedColumns<Number, RIGHT, GROUP_COLUMNS, TURN_ROWS> right(own_deltas, first_output);
  GroupSums sums;
  sums.clear();
  bool part_begins = false;
  std::uint32_t fragments[2][HALVES][1][4];
  const auto row_of = [&](int turn) { return begin + static_cast<long long>(turn) * TURN_ROWS; };
  if (turns > 0) {
    spikes.fetch(row_of(0));
    right.fetch(row_of(0));
    right.store(memory);
    spikes.make(fragments[0]);
    spikes.fetch(row_of(1));
    right.fetch(row_of(1));
  }
  show_stored();
  sync_block();
  int buffer = 0;
  const auto take_turn = [&](int turn, const std::uint32_t (&now)[HALVES][1][4], std::uint32_t (&next)[HALVES][1][4]) {
    begin_products();
    UNROLL(4)
    for (int half = 0; half < HALVES; ++half)
      multiply_parts<BFloat16, 1, RIGHT, true, false>(sums, now[half], shared + buffer + half * (2 * MATRIX_BYTES),
                                                      turned_bytes(1, GROUP_COLUMNS, TURN_ROWS), turned_group(TURN_ROWS), part_begins);
    end_of_products();
    buffer = buffer + BUFFER == TURN_BUFFERS * BUFFER ? 0 : buffer + BUFFER;
    const bool more = turn + 1 < turns;
    if (more) {
      right.store(memory + buffer);
      right.fetch(row_of(turn + 2));
    }
    if (turn % KEEP_EACH == KEEP_EACH - 1) {
      wait_for_products<0>();
      keep_parts(sums);
      part_begins = true;
    } else {
      wait_for_products<1>();
    }
    if (more) {
      spikes.make(next);
      spikes.fetch(row_of(turn + 2));
    }
    show_stored();
    sync_block();
  };
  UNROLL(1)
  for (int turn = 0; turn < turns; turn += 2) {
    take_turn(turn, fragments[0], fragments[1]);
    if (turn + 1 < turns)
      take_turn(turn + 1, fragments[1], fragments[0]);
  }
  wait_for_products<0>();
  if (!part_begins)
    keep_parts(sums);
  put_gradient(sums, SPIKE_SCALE, to, slice, input, first_output, inputs, outputs);
}

#else

// On other architectures, these kernels are never launched.
template <class Left, int RIGHT> PRODUCT_KERNEL void multiply_rows_by_groups(WHOLE_GRID typename Left::Rows, const char *, int,
                                                                             WHOLE_GRID RowResults, WHOLE_GRID TileOrder) {}
template <class Number, int RIGHT>
PRODUCT_KERNEL void multiply_turned_by_groups(WHOLE_GRID SpikeRows, WHOLE_GRID NumberRows<Number>, int, int, int, WHOLE_GRID Slices) {}

#endif

} // namespace snnc

#endif
