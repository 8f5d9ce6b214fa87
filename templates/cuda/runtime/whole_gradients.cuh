// Gradients of dense weights over a whole sequence: products of the transposed source with deltas, both converted while copied to shared memory.
#ifndef SNNC_WHOLE_GRADIENTS_CUH
#define SNNC_WHOLE_GRADIENTS_CUH

#include "gradients.hpp"
#include "whole_tiles.cuh"

namespace snnc {

/// Bytes from 8 columns of `rows` rows to the next 8, such that simultaneous stores of lanes are in different banks.
ANYWHERE constexpr int turned_group(int rows) { return rows / 8 * MATRIX_BYTES + 64; }
ANYWHERE constexpr int turned_bytes(int parts, int columns, int rows) { return parts * columns / 8 * turned_group(rows); }
constexpr int TURNED_GROUP = turned_group(STEP_DEPTH);

/// Loads columns of rows of numbers and stores them in shared memory as PARTS parts: [8 columns][8 rows][row][column].
template <class Number, int PARTS, int COLUMNS, int ROWS = STEP_DEPTH> class TurnedColumns {
public:
  DEVICE TurnedColumns(const NumberRows<Number> &of, int first_column)
      : rows(of), row(warp() % DOWN * 8 + lane_index() / 4), column(first_column + first_piece() * 16 + lane_index() % 4 * 4) {}

  /// Starts to load the rows of a step.
  DEVICE void fetch(long long first_row) {
    if (rows.aligned)
      read<true>(rows.at(first_row + row, column), rows.left(first_row + row, column));
    else
      read<false>(rows.at(first_row + row, column), rows.left(first_row + row, column));
  }

  DEVICE void store(char *to) const {
    const int lane = lane_index();
    char *first =
        to + (first_piece() * 2 + lane % 4 / 2) * turned_group(ROWS) + warp() % DOWN * MATRIX_BYTES + lane / 4 * 16 + lane % 2 * 8;
    UNROLL(8)
    for (int i = 0; i < EACH; ++i) {
      char *own = first + i * PIECES_APART * 2 * turned_group(ROWS);
      std::uint32_t low[PARTS], high[PARTS];
      split_pair<BFloat16>(found[i][0], found[i][1], low);
      split_pair<BFloat16>(found[i][2], found[i][3], high);
      UNROLL(2)
      for (int p = 0; p < PARTS; ++p) {
        const std::uint32_t both[2] = {low[p], high[p]};
        char *place = own + p * turned_bytes(1, COLUMNS, ROWS);
#if defined(SNNC_ON_HOST)
        std::memcpy(place, both, sizeof both);
#else
        *reinterpret_cast<uint2 *>(place) = make_uint2(both[0], both[1]);
#endif
      }
    }
  }

private:
  /// A warp processes 8 rows, and every PIECES_APART-th piece of 16 columns.
  static constexpr int DOWN = ROWS / 8, PIECES_APART = PRODUCT_THREADS / LANES / DOWN, EACH = COLUMNS / 16 / PIECES_APART;
  static_assert(EACH * 16 * PIECES_APART == COLUMNS, "all warps have the same number of pieces");
  const NumberRows<Number> &rows;
  int row, column;
  float found[EACH][4];

  DEVICE static int warp() { return thread_index() / LANES; }
  DEVICE static int first_piece() { return warp() / DOWN; }
  template <bool ALIGNED> DEVICE void read(const Number *from, int left) {
    UNROLL(8)
    for (int i = 0; i < EACH; ++i)
      read_four<ALIGNED>(from + i * PIECES_APART * 16, left - i * PIECES_APART * 16, found[i]);
  }
};

/// Stores a warp's part of the sums of a slice, from `input` and `output` on, without rows and columns outside the gradient.
template <class Share> DEVICE void put_gradient(const Sums<Share> &sums, float scale, const Slices &to, int slice, int input, int output,
                                                int inputs, int outputs) {
  const int lane = lane_index(), row = input + lane / 4, column = output + 2 * (lane % 4);
  float *own = &to.at(slice, static_cast<std::size_t>(row) * static_cast<std::size_t>(outputs) + static_cast<std::size_t>(column));
  if (outputs % 2 == 0 && to.numbers % 2 == 0 && input + Share::ROWS <= inputs && output + Share::WIDTH <= outputs) {
    UNROLL(4)
    for (int m = 0; m < Share::DOWN; ++m)
      UNROLL(2)
    for (int lower = 0; lower < 2; ++lower)
      UNROLL(16)
    for (int n = 0; n < Share::WIDTH / 8; ++n)
      put_two(own + static_cast<std::size_t>(16 * m + 8 * lower) * static_cast<std::size_t>(outputs) + 8 * n,
              sums.kept[m][n][2 * lower] * scale, sums.kept[m][n][2 * lower + 1] * scale, to.more);
    return;
  }
  UNROLL(4)
  for (int m = 0; m < Share::DOWN; ++m)
    UNROLL(16)
  for (int n = 0; n < Share::WIDTH / 8; ++n)
    UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    const int down = 16 * m + 8 * (i / 2), across = 8 * n + i % 2;
    if (row + down >= inputs || column + across >= outputs)
      continue;
    float &place = own[static_cast<std::size_t>(down) * static_cast<std::size_t>(outputs) + across];
    place = to.more ? place + sums.kept[m][n][i] * scale : sums.kept[m][n][i] * scale;
  }
}

/// A transposed source of spikes: lanes have words of 32 rows, from which fragments are built in registers.
template <class Share> class SpikesTurned {
public:
  static constexpr int PARTS = 1, SHARED = 0;
  static constexpr float SCALE = SPIKE_SCALE;
  using Rows = SpikeRows;
  std::uint32_t pairs[PARTS][Share::DOWN][4];

  DEVICE SpikesTurned(const Rows &of, int first_column) : rows(of), index((first_column + Share::row(thread_index() / LANES)) / 32) {}

  DEVICE void fetch(long long first_row) {
    UNROLL(2)
    for (int i = 0; i < WORDS; ++i)
      next[i] = rows.word(first_row + lane_index(), index + i);
  }
  /// Makes the loaded words those of the current step.
  DEVICE void store(char *) {}
  DEVICE void begin() {
    UNROLL(2)
    for (int i = 0; i < WORDS; ++i)
      now[i] = next[i];
  }
  DEVICE void fragments(int half, Place16) {
    const int lane = lane_index(), first = half * 16 + lane % 4 * 2, turn = 14 - lane / 4;
    UNROLL(2)
    for (int i = 0; i < WORDS; ++i) {
      std::uint32_t of_row[4];
      UNROLL(4)
      for (int r = 0; r < 4; ++r)
        of_row[r] = shuffle(now[i], first + r / 2 * 8 + r % 2);
      UNROLL(2)
      for (int pair = 0; pair < 2; ++pair) {
        const std::uint32_t one = of_row[2 * pair], other = of_row[2 * pair + 1];
        const std::uint32_t lower = rotate_left((one & 0xffffu) | other << 16, turn),
                            upper = rotate_left(one >> 16 | (other & 0xffff0000u), turn);
        pairs[0][2 * i][2 * pair] = lower & TWO_PAIR;
        pairs[0][2 * i][2 * pair + 1] = rotate_left(lower, 24) & TWO_PAIR;
        pairs[0][2 * i + 1][2 * pair] = upper & TWO_PAIR;
        pairs[0][2 * i + 1][2 * pair + 1] = rotate_left(upper, 24) & TWO_PAIR;
      }
    }
  }

private:
  static constexpr int WORDS = Share::ROWS / 32;
  const Rows &rows;
  int index;
  std::uint32_t now[WORDS], next[WORDS];
};

/// A transposed source of numbers: its parts are in shared memory, like those of the deltas.
template <class Share, int COUNT> class NumbersTurned {
public:
  static constexpr int PARTS = COUNT, SHARED = turned_bytes(COUNT, TILE_ROWS, STEP_DEPTH);
  static constexpr float SCALE = 1;
  using Rows = NumberRows<float>;
  std::uint32_t pairs[PARTS][Share::DOWN][4];

  DEVICE NumbersTurned(const Rows &of, int first_column) : columns(of, first_column) {}
  DEVICE void fetch(long long first_row) { columns.fetch(first_row); }
  DEVICE void store(char *to) { columns.store(to); }
  DEVICE void begin() {}
  DEVICE void fragments(int half, Place16 from) {
    const int lane = lane_index();
    const Place16 own = from + Share::row(thread_index() / LANES) / 8 * TURNED_GROUP + lane / 8 % 2 * TURNED_GROUP +
                        (2 * half + lane / 16) * MATRIX_BYTES + lane % 8 * 16;
    UNROLL(2)
    for (int p = 0; p < PARTS; ++p)
      UNROLL(4)
    for (int m = 0; m < Share::DOWN; ++m)
      load_matrices<true>(pairs[p][m], own + p * turned_bytes(1, TILE_ROWS, STEP_DEPTH) + 2 * m * TURNED_GROUP);
  }

private:
  TurnedColumns<float, COUNT, TILE_ROWS> columns;
};

/// Bytes of two buffers: one is read while the other receives the values of the next step.
ANYWHERE constexpr std::size_t gradient_shared(int left_bytes, int parts, int columns) {
  return static_cast<std::size_t>(2 * (left_bytes + turned_bytes(parts, columns, STEP_DEPTH)));
}

/// gradient[input][output] = sum over rows of source[row][input] * delta[row][output]; a block computes a tile over the rows of a slice.
template <class Left, class Number, int RIGHT, class Share, int COLUMNS>
PRODUCT_KERNEL void multiply_turned(WHOLE_GRID typename Left::Rows source, WHOLE_GRID NumberRows<Number> deltas, int inputs, int outputs,
                                    int rows, WHOLE_GRID Slices to) {
  constexpr int BUFFER = Left::SHARED + turned_bytes(RIGHT, COLUMNS, STEP_DEPTH), EMPTY_EACH = 4;
  const int lane = lane_index(), warp = thread_index() / LANES, down = whole_parts(inputs, TILE_ROWS),
            tiles = down * whole_parts(outputs, COLUMNS);
  const int slice = block_index() / tiles, tile = block_index() % tiles, first_input = tile % down * TILE_ROWS,
            first_output = tile / down * COLUMNS;
  const int begin = to.first(slice, rows), end = to.first(slice + 1, rows), steps = whole_parts(end - begin, STEP_DEPTH);
  // Rows of the next slice count as 0.
  typename Left::Rows own_source = source;
  NumberRows<Number> own_deltas = deltas;
  own_source.end(end);
  own_deltas.end(end);
  char *memory = shared_memory();
  const Place16 shared = place_of(memory);
  Left left(own_source, first_input);
  TurnedColumns<Number, RIGHT, COLUMNS> right(own_deltas, first_output);
  Sums<Share> sums;
  sums.clear();
  const int input = first_input + Share::row(warp), output = first_output + Share::column(warp);
  const bool some = input < inputs && output < outputs;
  if (steps > 0) {
    left.fetch(begin);
    right.fetch(begin);
    left.store(memory);
    right.store(memory + Left::SHARED);
  }
  UNROLL(1)
  for (int step = 0; step < steps; ++step) {
    const int buffer = step % 2 * BUFFER, other = BUFFER - buffer;
    left.begin();
    const bool more = step + 1 < steps;
    if (more) {
      left.fetch(begin + static_cast<long long>(step + 1) * STEP_DEPTH);
      right.fetch(begin + static_cast<long long>(step + 1) * STEP_DEPTH);
    }
    sync_block();
    if (some) {
      UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        left.fragments(half, shared + buffer);
        add_products<BFloat16, Left::PARTS, RIGHT, true, false>(sums, left.pairs,
                                                                shared + buffer + Left::SHARED + Share::column(warp) / 8 * TURNED_GROUP +
                                                                    matrix_row(half, lane, TURNED_GROUP),
                                                                Layout{turned_bytes(1, COLUMNS, STEP_DEPTH), TURNED_GROUP}, lane);
      }
      if (step % EMPTY_EACH == EMPTY_EACH - 1)
        sums.empty();
    }
    if (more) {
      left.store(memory + other);
      right.store(memory + other + Left::SHARED);
    }
  }
  if (!some)
    return;
  sums.empty();
  put_gradient(sums, Left::SCALE, to, slice, input, output, inputs, outputs);
}

} // namespace snnc

#endif
