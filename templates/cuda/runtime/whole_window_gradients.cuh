// Weight gradients of convolutions over many rows, from spikes: a block processes a part of the rows, 256 positions at a time. It collects, for
// each weight, the bits that its tap reads there and, for each target channel, the deltas, split into two 16-bit values; their product, on tensor
// cores, is the partial sum of the block. A second kernel adds the partial sums in order.
#ifndef SNNC_WHOLE_WINDOW_GRADIENTS_CUH
#define SNNC_WHOLE_WINDOW_GRADIENTS_CUH

#include "whole_fields.cuh"
#include "whole_slices.cuh"

namespace snnc {

/// Arguments of a weight gradient: `field` is that of the forward pass; positions are numbered consecutively over all rows of a slice.
struct GradientTask {
  Field field;
  const std::uint32_t *words;
  int row_words;
  const float *numbers;
  const float *deltas;
  int rows;
  /// Partial sums, [slice][weights, then biases], and rows per slice.
  float *partial;
  int numbers_of_slice, slice_rows;
  /// Number of parts of a channel's weights, and of a group's channels.
  int weight_parts, channel_parts;
  Divisor by_positions, by_width, by_taps, by_down, by_across;
  /// Number of warps that share the weights of a block's part; the others share the positions.
  int warps_down;
  bool bias;
};

/// A position in consecutive numbering over rows.
struct Counted {
  int image, y, x;

  /// Position `position` of a row, advanced by `further`.
  DEVICE Counted(const GradientTask &task, int row, int position, int further) {
    const int index = position + further, more = task.by_positions.quotient(index), own = index - more * task.field.positions();
    image = row + more;
    y = task.by_width.quotient(own);
    x = own - y * task.field.target[1];
  }
  DEVICE void next(const Field &field, int run) {
    x += run;
    if (x < field.target[1])
      return;
    x = 0;
    if (++y == field.target[0]) {
      y = 0;
      ++image;
    }
  }
};

/// Number of taps along x whose bits are read together.
constexpr int TAPS_TOGETHER = 8;

/// Returns whether the bits of TAPS_TOGETHER taps at consecutive positions are within 64 bits of a row.
DEVICE bool reads_windows(const Field &field) { return field.step[1] == 1 && (TAPS_TOGETHER - 1) * field.apart[1] <= 32; }

/// Calls `read` with each run of positions of a row among the 32 from `at` on: the words of its image, its number of positions, the number of
/// those before it, its first position, and the source position that tap row `i` reads there in the first column.
template <class Read>
DEVICE void for_each_run(const GradientTask &task, const std::uint32_t *words, int rows, int channel, int i, Counted at, const Read &read) {
  const Field &field = task.field;
  UNROLL(1)
  for (int filled = 0; filled < 32 && at.image < rows;) {
    const int run = least(32 - filled, field.target[1] - at.x), y = at.y * field.step[0] + field.start[0] + i * field.apart[0];
    if (y >= 0 && y < field.source[0])
      read(words + static_cast<std::size_t>(at.image) * static_cast<std::size_t>(task.row_words),
           (channel * field.source[0] + y) * field.source[1], at.x * field.step[1] + field.start[1], run, filled);
    filled += run;
    at.next(field, run);
  }
}

/// Reads the bits of the taps from first_tap on of row `i`, at 32 positions from `at` on; row 0 is the first of the slice.
DEVICE void window_bits(const GradientTask &task, const std::uint32_t *words, int rows, int channel, int i, int first_tap,
                        const Counted &at, std::uint32_t (&found)[TAPS_TOGETHER]) {
  const int apart = task.field.apart[1];
  for_each_run(task, words, rows, channel, i, at, [&](const std::uint32_t *row, int line, int left, int run, int filled) {
    const int x = left + first_tap * apart, begin = most(0, -x), end = least(run + (TAPS_TOGETHER - 1) * apart, task.field.source[1] - x);
    if (end <= begin)
      return;
    const std::uint64_t window = long_bits(row, line + x + begin, end - begin) << begin;
    const std::uint32_t low = static_cast<std::uint32_t>(window), high = static_cast<std::uint32_t>(window >> 32), kept = ~0u >> (32 - run);
    UNROLL(TAPS_TOGETHER)
    for (int j = 0; j < TAPS_TOGETHER; ++j)
      found[j] |= (moved_right(low, high, j * apart & 31) & kept) << filled;
  });
}

/// Returns the bits of a single tap, for any step and distance of taps.
DEVICE std::uint32_t tap_bits(const GradientTask &task, const std::uint32_t *words, int rows, int channel, int i, int tap,
                              const Counted &at) {
  const Field &field = task.field;
  std::uint32_t found = 0;
  for_each_run(task, words, rows, channel, i, at, [&](const std::uint32_t *row, int line, int left, int run, int filled) {
    UNROLL(1)
    for (int k = 0, x = left + tap * field.apart[1]; k < run; ++k, x += field.step[1])
      if (x >= 0 && x < field.source[1])
        found |= bits_between(row, line + x, 1) << (filled + k);
  });
  return found;
}

template <int DOWN, int ACROSS> class BitGradient {
public:
  /// Number of words of positions that a block processes at a time.
  static constexpr int WORDS = ACROSS > 4 ? 4 : 8, STRIDE = WORDS + 1, POSITIONS = WORDS * 32, CHANNELS = ACROSS * 8;
  /// Number of units whose deltas are read together: registers for two are left only if there are few sums.
  static constexpr int UNITS = ACROSS > 4 ? 1 : 2;
  using Half = BFloat16;
  /// The part of a block, and the row of the slice and the position of the next round; in shared memory, because the sums need the registers.
  struct alignas(16) Block {
    int part, first_channel, group, slice, image, position;
  };

  static std::size_t shared_bytes(int warps_down) {
    const std::size_t deltas = (sizeof(Quad) / 4 + sizeof(float)) * CHANNELS * POSITIONS,
                      bits = 2 * sizeof(std::uint32_t) * STRIDE * static_cast<std::size_t>(warps_down * DOWN * 16);
    return sizeof(Block) + std::max(deltas + bits, sizeof(float) * static_cast<std::size_t>(warps_down * DOWN * ACROSS * 4 * LANES));
  }

  DEVICE BitGradient(const GradientTask &given) : task(given), field(given.field) {
    if (thread_index() > 0)
      return;
    int at = block_index();
    Block &own = *reinterpret_cast<Block *>(shared_memory());
    own.part = at % task.weight_parts;
    at /= task.weight_parts;
    own.first_channel = at % task.channel_parts * ACROSS * 8;
    at /= task.channel_parts;
    own.group = at % field.groups;
    own.slice = at / field.groups;
    own.image = own.position = 0;
  }

  DEVICE void run() {
    sync_block();
    const int sharers = GRADIENT_WARPS / task.warps_down, room = task.warps_down * DOWN * 16 * STRIDE;
    fill_rest(bits());
    fill_rest(bits() + room);
    // Data of the next round are loaded while the products of this one are computed; the first round only loads.
    UNROLL(1)
    for (int first = -POSITIONS, parity = 1; first < positions(); first += POSITIONS, parity ^= 1) {
      if (first >= 0) {
        copies_done();
        sync_block();
        split_deltas();
        advance();
        sync_block();
      }
      if (first + POSITIONS < positions()) {
        fetch_deltas(positions() - first - POSITIONS);
        fill_bits(bits() + (parity ^ 1) * room);
      }
      if (first >= 0 && first_weight() + own() < patch()) {
        const int words = least(WORDS, whole_parts(positions() - first, 32));
        UNROLL(1)
        for (int word = sharer(); word < words; word += sharers)
          multiply(bits() + parity * room, word);
      }
    }
    for (int other = 1; other < sharers; ++other)
      take_over(other);
    if (sharer() == 0)
      put();
  }

private:
  const GradientTask &task;
  const Field &field;
  float sums[DOWN][ACROSS][4] = {};

  DEVICE static const volatile Block &block() { return *reinterpret_cast<const volatile Block *>(shared_memory()); }
  DEVICE int first_row() const { return block().slice * task.slice_rows; }
  DEVICE int rows() const { return least(task.slice_rows, task.rows - first_row()); }
  DEVICE int positions() const { return rows() * field.positions(); }
  DEVICE static Quad *deltas() { return reinterpret_cast<Quad *>(shared_memory() + sizeof(Block)); }
  DEVICE static float *numbers() { return reinterpret_cast<float *>(deltas() + CHANNELS * POSITIONS / 4); }
  DEVICE static std::uint32_t *bits() { return reinterpret_cast<std::uint32_t *>(numbers() + CHANNELS * POSITIONS); }
  /// Index of the warp; the first of its weights in the block's part, and its place among the warps that share them.
  DEVICE static int warp() { return not_known(thread_index()) / LANES; }
  DEVICE int own() const { return warp() % task.warps_down * DOWN * 16; }
  DEVICE int sharer() const { return warp() / task.warps_down; }

  /// Number of weights of a channel, plus one for the bias, which reads ones.
  DEVICE int patch() const { return field.patch() + (task.bias ? 1 : 0); }
  DEVICE int first_weight() const { return block().part * task.warps_down * DOWN * 16; }

  /// A quad contains a lane's part of a fragment, high and low parts. Quads of odd channels are placed such that eight lanes read all banks.
  DEVICE static int quad_place(int channel, int word, int unit, int column) {
    return (channel * WORDS + word) * 8 + ((unit * 4 + column) ^ (channel & 1) * 4);
  }

  /// Moves to the next round; other threads must not read the position until the next block barrier.
  DEVICE void advance() {
    if (thread_index() > 0)
      return;
    Block &own = *reinterpret_cast<Block *>(shared_memory());
    const int all = field.positions(), next = own.position + POSITIONS;
    own.image += next / all;
    own.position = next % all;
  }

  /// Starts to copy the deltas of the next round; `left`: positions up to the end of the slice. Each thread copies one position.
  DEVICE void fetch_deltas(int left) {
    constexpr int TOGETHER = GRADIENT_THREADS / POSITIONS;
    const int all = field.positions(), thread = not_known(thread_index()), further = thread % POSITIONS, begin = thread / POSITIONS;
    const Counted at(task, first_row() + block().image, block().position, further);
    const float *from = task.deltas;
    const int known = least(CHANNELS, field.width - block().first_channel);
    if (further < left)
      from += (static_cast<std::size_t>(at.image) * static_cast<std::size_t>(field.groups * field.width) +
               static_cast<std::size_t>(block().group * field.width + block().first_channel + begin)) *
                  static_cast<std::size_t>(all) +
              static_cast<std::size_t>(at.y * field.target[1] + at.x);
    UNROLL(8)
    for (int channel = begin; channel < CHANNELS; channel += TOGETHER) {
      const bool there = further < left && channel < known;
      copy_later(numbers() + channel * POSITIONS + further, there ? from : task.deltas, there);
      from += TOGETHER * all;
    }
  }

  DEVICE void split_deltas() {
    UNROLL(4)
    for (int i = not_known(thread_index()); i < CHANNELS * WORDS * 8; i += GRADIENT_THREADS) {
      const int column = i / 2 % 4, unit = i % 2, word = i / 8 % WORDS, channel = i / 8 / WORDS;
      const float *from = numbers() + channel * POSITIONS + word * 32 + column * 4 + unit * 2;
      Quad split;
      split_pair<Half>(from[0], from[16], split.x, split.z);
      split_pair<Half>(from[1], from[17], split.y, split.w);
      deltas()[quad_place(channel, word, unit, column)] = split;
    }
  }

  /// Fills the rows after the weights: ones for the biases, and zeros.
  DEVICE void fill_rest(std::uint32_t *to) {
    const int rows_here = task.warps_down * DOWN * 16;
    for (int i = thread_index(); i < rows_here * STRIDE; i += GRADIENT_THREADS)
      to[i] = first_weight() + i / STRIDE == field.patch() ? ~0u : 0u;
    sync_block();
  }

  DEVICE void fill_bits(std::uint32_t *to) {
    const std::uint32_t *words = task.words + static_cast<std::size_t>(first_row()) * static_cast<std::size_t>(task.row_words);
    const int along = field.taps[1], parts = whole_parts(along, TAPS_TOGETHER);
    const int begin = first_weight(), end = least(begin + task.warps_down * DOWN * 16, field.patch());
    const int first_run = begin / along, runs = whole_parts(end, along) - first_run;
    UNROLL(1)
    for (int i = not_known(thread_index()); i < runs * parts * WORDS; i += GRADIENT_THREADS) {
      const int word = i % WORDS, part = parts == 1 ? 0 : i / WORDS % parts, run = first_run + (parts == 1 ? i / WORDS : i / WORDS / parts);
      const int channel = task.by_down.quotient(run), first_tap = part * TAPS_TOGETHER;
      const int row = run - channel * field.taps[0], weight = run * along + first_tap, known = least(TAPS_TOGETHER, along - first_tap);
      const Counted at(task, block().image, block().position, word * 32);
      if (reads_windows(field)) {
        std::uint32_t found[TAPS_TOGETHER] = {};
        window_bits(task, words, rows(), block().group * field.depth + channel, row, first_tap, at, found);
        UNROLL(TAPS_TOGETHER)
        for (int j = 0; j < TAPS_TOGETHER; ++j)
          if (j < known && weight + j >= begin && weight + j < end)
            to[(weight + j - begin) * STRIDE + word] = found[j];
      } else {
        UNROLL(1)
        for (int j = most(0, begin - weight); j < least(known, end - weight); ++j)
          to[(weight + j - begin) * STRIDE + word] =
              tap_bits(task, words, rows(), block().group * field.depth + channel, row, first_tap + j, at);
      }
    }
  }

  DEVICE static std::uint32_t pair(std::uint32_t word, int left) { return word << left & 0x40004000u; }

  DEVICE void multiply(const std::uint32_t *from, int word) {
    const int lane = not_known(lane_index());
    // The compiler would keep the places of all channels in registers, which the sums need; the other unit's place differs in one bit.
    const int first = not_known(quad_place(lane / 4, word, 0, lane % 4));
    from += (own() + lane / 4) * STRIDE + word;
    std::uint32_t read[DOWN][2];
    UNROLL(DOWN)
    for (int i = 0; i < DOWN; ++i)
      UNROLL(2)
    for (int half = 0; half < 2; ++half)
      read[i][half] = from[(i * 16 + half * 8) * STRIDE] >> (lane % 4 * 4);
    UNROLL(UNITS)
    for (int unit = 0; unit < 2; ++unit) {
      const int left = unit == 0 ? 14 : 12;
      std::uint32_t a[DOWN][4];
      UNROLL(DOWN)
      for (int i = 0; i < DOWN; ++i) {
        a[i][0] = pair(read[i][0], left);
        a[i][1] = pair(read[i][1], left);
        a[i][2] = pair(read[i][0], left - 1);
        a[i][3] = pair(read[i][1], left - 1);
      }
      UNROLL(ACROSS)
      for (int j = 0; j < ACROSS; ++j) {
        const Quad found = deltas()[(first ^ unit * 4) + j * WORDS * 64];
        const std::uint32_t high[2] = {found.x, found.y}, low[2] = {found.z, found.w};
        UNROLL(DOWN)
        for (int i = 0; i < DOWN; ++i)
          Half::multiply(sums[i][j], a[i], high, lane);
        UNROLL(DOWN)
        for (int i = 0; i < DOWN; ++i)
          Half::multiply(sums[i][j], a[i], low, lane);
      }
    }
  }

  /// The first warps add the sums of other warps for the same weights.
  DEVICE void take_over(int other) {
    const int sharer = this->sharer(), lane = lane_index();
    float *room = reinterpret_cast<float *>(deltas()) + own() / 16 * ACROSS * 4 * LANES + lane;
    sync_block();
    UNROLL(DOWN)
    for (int i = 0; i < DOWN; ++i)
      UNROLL(ACROSS)
    for (int j = 0; j < ACROSS; ++j)
      UNROLL(4)
    for (int k = 0; k < 4; ++k)
      if (sharer == other)
        room[((i * ACROSS + j) * 4 + k) * LANES] = sums[i][j][k];
    sync_block();
    UNROLL(DOWN)
    for (int i = 0; i < DOWN; ++i)
      UNROLL(ACROSS)
    for (int j = 0; j < ACROSS; ++j)
      UNROLL(4)
    for (int k = 0; k < 4; ++k)
      if (sharer == 0)
        sums[i][j][k] += room[((i * ACROSS + j) * 4 + k) * LANES];
  }

  DEVICE void put() const {
    const int lane = lane_index(), first = first_weight() + own(), first_channel = block().first_channel, group = block().group;
    float *to = task.partial + static_cast<std::size_t>(block().slice) * static_cast<std::size_t>(task.numbers_of_slice);
    UNROLL(DOWN)
    for (int i = 0; i < DOWN; ++i)
      UNROLL(ACROSS)
    for (int j = 0; j < ACROSS; ++j)
      UNROLL(4)
    for (int k = 0; k < 4; ++k) {
      const int weight = first + i * 16 + k / 2 * 8 + lane / 4, channel = first_channel + j * 8 + lane % 4 * 2 + k % 2;
      if (channel >= field.width || weight >= patch())
        continue;
      const int target = group * field.width + channel;
      // A spike is 2 in a fragment.
      to[weight < field.patch() ? target * field.patch() + weight : field.groups * field.width * field.patch() + target] =
          0.5f * sums[i][j][k];
    }
  }
};

template <int DOWN, int ACROSS> KERNEL_OF(GRADIENT_THREADS, 2) void bit_gradient_kernel(WHOLE_GRID GradientTask task) {
  BitGradient<DOWN, ACROSS>(task).run();
}

} // namespace snnc

#endif
