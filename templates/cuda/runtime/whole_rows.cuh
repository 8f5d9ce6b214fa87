// Products over a whole sequence of rows (of spikes or of numbers) with prepared weights: forward for currents, backward for adjoints.
#ifndef SNNC_WHOLE_ROWS_CUH
#define SNNC_WHOLE_ROWS_CUH

#include "whole_weights.cuh"

namespace snnc {

/// Fragments of a warp's rows of spikes. A lane loads a word of every fourth step, and gets the others from its neighbours.
template <int DOWN> class SpikeFragments {
public:
  static constexpr int PARTS = 1, AHEAD = 4;
  static constexpr bool EXACT = true;
  using Half = Float16;
  using Rows = SpikeRows;
  std::uint32_t pairs[2][PARTS][DOWN][4];

  DEVICE SpikeFragments(const Rows &of, long long first_row, int lane_of)
      : from(of.data + (first_row + lane_of / 4) * of.words), below(8 * static_cast<std::size_t>(of.words)), lane(lane_of) {
    UNROLL(8)
    for (int r = 0; r < 2 * DOWN; ++r)
      words[r] = first_row + lane_of / 4 + 8 * r < of.rows ? of.words : 0;
    fetch(0);
  }

  /// Builds the fragments of a step.
  DEVICE void begin(int step) {
    if (step % AHEAD == 0) {
      UNROLL(8)
      for (int r = 0; r < 2 * DOWN; ++r)
        now[r] = next[r];
      fetch(step + AHEAD);
    }
    UNROLL(8)
    for (int r = 0; r < 2 * DOWN; ++r) {
      const std::uint32_t word = rotate_left(shuffle(now[r], lane / 4 * 4 + step % AHEAD), 14 - lane % 4);
      UNROLL(4)
      for (int i = 0; i < 4; ++i)
        pairs[i / 2][0][r / 2][i % 2 * 2 + r % 2] = rotate_left(word, 32 - 4 * i) & TWO_PAIR;
    }
  }

private:
  const std::uint32_t *from;
  std::size_t below;
  int lane, words[2 * DOWN];
  std::uint32_t now[2 * DOWN], next[2 * DOWN];

  DEVICE void fetch(int step) {
    UNROLL(8)
    for (int r = 0; r < 2 * DOWN; ++r)
      next[r] = step + lane % 4 < words[r] ? from[static_cast<std::size_t>(r) * below + static_cast<std::size_t>(step + lane % 4)] : 0;
  }
};

/// Fragments of a warp's rows of numbers, as COUNT parts. The values of the next step are loaded meanwhile, except on devices without
/// tensor cores for bfloat16: products there use all registers and take far longer than a load.
template <class Number, int COUNT, int DOWN> class NumberFragments {
public:
  static constexpr bool READS_AHEAD = BFloat16::TENSOR_CORES;
  static constexpr int PARTS = COUNT;
  static constexpr bool EXACT = false;
  using Half = BFloat16;
  using Rows = NumberRows<Number>;
  std::uint32_t pairs[2][PARTS][DOWN][4];

  DEVICE NumberFragments(const Rows &of, long long first_row, int lane)
      : from(of.at(first_row + lane / 4, lane % 4 * 4)), below(8 * static_cast<std::size_t>(of.stride)), aligned(of.aligned) {
    UNROLL(8)
    for (int r = 0; r < 2 * DOWN; ++r)
      left[r] = of.left(first_row + lane / 4 + 8 * r, lane % 4 * 4);
    if (READS_AHEAD)
      fetch();
  }

  DEVICE void begin(int) {
    if (!READS_AHEAD)
      fetch();
    UNROLL(2)
    for (int half = 0; half < 2; ++half)
      UNROLL(8)
    for (int r = 0; r < 2 * DOWN; ++r)
      UNROLL(2)
    for (int i = 0; i < 2; ++i) {
      std::uint32_t parts[PARTS];
      split_pair<BFloat16>(found[half][r][2 * i], found[half][r][2 * i + 1], parts);
      UNROLL(3)
      for (int p = 0; p < PARTS; ++p)
        pairs[half][p][r / 2][i * 2 + r % 2] = parts[p];
    }
    from += STEP_DEPTH;
    UNROLL(8)
    for (int r = 0; r < 2 * DOWN; ++r)
      left[r] -= STEP_DEPTH;
    if (READS_AHEAD)
      fetch();
  }

private:
  /// Start of the next step's values in the first row, distance between rows, and remaining values in each row.
  const Number *from;
  std::size_t below;
  int left[2 * DOWN];
  bool aligned;
  float found[2][2 * DOWN][4];

  DEVICE void fetch() {
    if (aligned)
      read<true>();
    else
      read<false>();
  }
  template <bool ALIGNED> DEVICE void read() {
    UNROLL(8)
    for (int r = 0; r < 2 * DOWN; ++r)
      UNROLL(2)
    for (int half = 0; half < 2; ++half)
      read_four<ALIGNED>(from + static_cast<std::size_t>(r) * below + half * 16, left[r] - half * 16, found[half][r]);
  }
};

/// Destination of results: [row][output]. `scales` and `start` (added to the sums) may be null; `add`: adds to the destination.
struct RowResults {
  float *data;
  const float *scales, *start;
  long long rows;
  int outputs;
  bool add;

  DEVICE float whole(int output, float large, float small) const {
    const float sum = scales != nullptr ? fmaf(small, SMALL_PART, large) * scales[output] : large;
    return start != nullptr ? sum + start[output] : sum;
  }

  /// Stores a warp's sums: for spikes, the small parts are added last; for numbers, they are already included.
  template <class Share> DEVICE void put_all(const Sums<Share> &sums, long long first_row, int first_column) const {
    const int lane = lane_index(), column = first_column + 2 * (lane % 4);
    const long long row = first_row + lane / 4;
    float *own = data + row * outputs + column;
    if (outputs % 2 == 0 && first_row + Share::ROWS <= rows && first_column + Share::WIDTH <= outputs) {
      UNROLL(16)
      for (int n = 0; n < Share::WIDTH / 8; ++n)
        UNROLL(4)
      for (int m = 0; m < Share::DOWN; ++m)
        UNROLL(2)
      for (int lower = 0; lower < 2; ++lower)
        put_two(own + static_cast<std::size_t>(16 * m + 8 * lower) * static_cast<std::size_t>(outputs) + 8 * n,
                whole(column + 8 * n, sums.kept[m][n][2 * lower], sums.part[m][n][2 * lower]),
                whole(column + 8 * n + 1, sums.kept[m][n][2 * lower + 1], sums.part[m][n][2 * lower + 1]), add);
      return;
    }
    UNROLL(16)
    for (int n = 0; n < Share::WIDTH / 8; ++n)
      UNROLL(4)
    for (int m = 0; m < Share::DOWN; ++m)
      UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      const int down = 16 * m + 8 * (i / 2), across = 8 * n + i % 2;
      if (row + down >= rows || column + across >= outputs)
        continue;
      const float sum = whole(column + across, sums.kept[m][n][i], sums.part[m][n][i]);
      float &place = own[static_cast<std::size_t>(down) * static_cast<std::size_t>(outputs) + across];
      place = add ? place + sum : sum;
    }
  }
};

/// The tile of a block: all rows of a few strips follow each other, so that these strips stay in the cache.
struct TileOrder {
  static constexpr int TOGETHER = 8;
  int down, across;
  DEVICE void tile(int block, int &row, int &column) const {
    const int each = TOGETHER * down, first = block / each * TOGETHER, width = least(TOGETHER, across - first), rest = block % each;
    row = rest / width;
    column = first + rest % width;
  }
};

/// Number of steps in shared memory (present or being loaded), and their bytes for a number of parts and columns.
ANYWHERE constexpr int row_stages(int parts) { return parts > 2 ? 2 : 4; }
ANYWHERE constexpr std::size_t row_shared(int parts, int columns) {
  return static_cast<std::size_t>(row_stages(parts) * parts * columns / 8 * GROUP_BYTES);
}

/// Copies the weights of a step, for the columns of a tile, to shared memory.
template <int PARTS, int COLUMNS> DEVICE void fetch_weights(Place16 to, const char *from) {
  constexpr int PIECES = COLUMNS / 8 * GROUP_BYTES / 16;
  UNROLL(6)
  for (int i = thread_index(); i < PARTS * PIECES; i += PRODUCT_THREADS)
    copy_later(to + i * 16, from + i / PIECES * PLANE_BYTES + i % PIECES * 16);
}

/// results[row][output] = sum over the depths of left[row][depth] * weights[depth][output].
template <class Left, int RIGHT, class Share, int COLUMNS>
PRODUCT_KERNEL void multiply_rows(WHOLE_GRID typename Left::Rows rows, const char *planes, int steps, WHOLE_GRID RowResults results,
                                  WHOLE_GRID TileOrder order) {
  constexpr int STAGES = row_stages(RIGHT), STAGE_BYTES = RIGHT * COLUMNS / 8 * GROUP_BYTES, EMPTY_EACH = Left::PARTS > 2 ? 1 : 4;
  const int lane = lane_index(), warp = thread_index() / LANES;
  int down, across;
  order.tile(block_index(), down, across);
  const int column = across * COLUMNS;
  const char *from = planes + static_cast<std::size_t>(column / STRIP) * static_cast<std::size_t>(steps) * (RIGHT * PLANE_BYTES) +
                     column % STRIP / 8 * GROUP_BYTES;
  const Place16 shared = place_of(shared_memory());
  UNROLL(3)
  for (int step = 0; step < STAGES - 1; ++step) {
    if (step < steps)
      fetch_weights<RIGHT, COLUMNS>(shared + step * STAGE_BYTES, from + static_cast<std::size_t>(step) * (RIGHT * PLANE_BYTES));
    end_of_copies();
  }
  const long long first_row = static_cast<long long>(down) * TILE_ROWS + Share::row(warp);
  const int first_column = column + Share::column(warp);
  const bool some = first_row < results.rows && first_column < results.outputs;
  Left left(rows, first_row, lane);
  Sums<Share> sums;
  sums.clear();
  const Place16 own = shared + Share::column(warp) / 8 * GROUP_BYTES;
  int stage = 0;
  UNROLL(1)
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<STAGES - 2>();
    sync_block();
    const int later = step + STAGES - 1;
    if (later < steps)
      fetch_weights<RIGHT, COLUMNS>(shared + (stage == 0 ? STAGES - 1 : stage - 1) * STAGE_BYTES,
                                    from + static_cast<std::size_t>(later) * (RIGHT * PLANE_BYTES));
    end_of_copies();
    if (some) {
      left.begin(step);
      UNROLL(2)
      for (int half = 0; half < 2; ++half)
        add_products<typename Left::Half, Left::PARTS, RIGHT, false, Left::EXACT>(
            sums, left.pairs[half], own + stage * STAGE_BYTES + matrix_row(half, lane, GROUP_BYTES),
            Layout{COLUMNS / 8 * GROUP_BYTES, GROUP_BYTES}, lane);
      if (!Left::EXACT && step % EMPTY_EACH == EMPTY_EACH - 1)
        sums.empty();
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  if (!some)
    return;
  if (!Left::EXACT)
    sums.empty();
  results.put_all(sums, first_row, first_column);
}

} // namespace snnc

#endif
