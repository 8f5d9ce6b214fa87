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

/// Reads the bits of the taps from first_tap on of row `i`, at 32 positions from `at` on; row 0 is the first of the slice.
DEVICE void tap_bits(const GradientTask &task, const std::uint32_t *words, int rows, int channel, int i, int first_tap, Counted at,
                     std::uint32_t (&found)[TAPS_TOGETHER]) {
  const Field &field = task.field;
  const int apart = field.apart[1];
  // Whether all of them are within 64 bits of a row.
  const bool near = field.step[1] == 1 && (TAPS_TOGETHER - 1) * apart <= 32;
  for (int filled = 0; filled < 32 && at.image < rows;) {
    const int run = least(32 - filled, field.target[1] - at.x);
    const int y = at.y * field.step[0] + field.start[0] + i * field.apart[0], x = at.x * field.step[1] + field.start[1] + first_tap * apart;
    if (y >= 0 && y < field.source[0]) {
      const std::uint32_t *row = words + static_cast<std::size_t>(at.image) * static_cast<std::size_t>(task.row_words);
      const int first = (channel * field.source[0] + y) * field.source[1] + x;
      if (near) {
        const int begin = most(0, -x), end = least(run + (TAPS_TOGETHER - 1) * apart, field.source[1] - x);
        if (end > begin) {
          const std::uint64_t window = long_bits(row, first + begin, end - begin) << begin;
          const std::uint32_t low = static_cast<std::uint32_t>(window), high = static_cast<std::uint32_t>(window >> 32),
                              kept = ~0u >> (32 - run);
          UNROLL(TAPS_TOGETHER)
          for (int j = 0; j < TAPS_TOGETHER; ++j)
            found[j] |= (moved_right(low, high, j * apart & 31) & kept) << filled;
        }
      } else {
        UNROLL(TAPS_TOGETHER)
        for (int j = 0; j < TAPS_TOGETHER; ++j)
          for (int k = 0, place = x + j * apart; k < run; ++k, place += field.step[1])
            if (first_tap + j < field.taps[1] && place >= 0 && place < field.source[1])
              found[j] |= bits_between(row, first + place - x, 1) << (filled + k);
      }
    }
    filled += run;
    at.next(field, run);
  }
}

template <int DOWN, int ACROSS> class BitGradient {
public:
  /// Number of words of positions that a block processes at a time.
  static constexpr int WORDS = ACROSS > 4 ? 4 : 8, STRIDE = WORDS + 1, POSITIONS = WORDS * 32, CHANNELS = ACROSS * 8;
  using Half = BFloat16;

  static std::size_t shared_bytes(int warps_down) {
    const std::size_t deltas = (sizeof(Quad) / 4 + sizeof(float)) * CHANNELS * POSITIONS,
                      bits = 2 * sizeof(std::uint32_t) * STRIDE * static_cast<std::size_t>(warps_down * DOWN * 16);
    return std::max(deltas + bits, sizeof(float) * static_cast<std::size_t>(warps_down * DOWN * ACROSS * 4 * LANES));
  }

  DEVICE BitGradient(const GradientTask &given) : task(given), field(given.field), lane(lane_index()), warp(thread_index() / LANES) {
    int at = block_index();
    part = at % task.weight_parts;
    at /= task.weight_parts;
    first_channel = at % task.channel_parts * ACROSS * 8;
    at /= task.channel_parts;
    group = at % field.groups;
    slice = at / field.groups;
    first_row = slice * task.slice_rows;
    rows = least(task.slice_rows, task.rows - first_row);
    deltas = reinterpret_cast<Quad *>(shared_memory());
    numbers = reinterpret_cast<float *>(deltas + CHANNELS * POSITIONS / 4);
    bits = reinterpret_cast<std::uint32_t *>(numbers + CHANNELS * POSITIONS);
  }

  DEVICE void run() {
    const int positions = rows * field.positions(), sharers = GRADIENT_WARPS / task.warps_down, sharer = warp / task.warps_down;
    const int own = warp % task.warps_down * DOWN * 16;
    const int all = field.positions(), room = task.warps_down * DOWN * 16 * STRIDE;
    int image = 0, position = 0;
    fill_rest(bits);
    fill_rest(bits + room);
    fetch_deltas(image, position, positions);
    fill_bits(image, position, bits);
    // Data of the next round are loaded while the products of this one are computed.
    for (int first = 0, parity = 0; first < positions; first += POSITIONS, parity ^= 1) {
      copies_done();
      sync_block();
      split_deltas();
      sync_block();
      position += POSITIONS;
      image += position / all;
      position %= all;
      if (first + POSITIONS < positions) {
        fetch_deltas(image, position, positions - first - POSITIONS);
        fill_bits(image, position, bits + (parity ^ 1) * room);
      }
      if (first_weight() + own < patch())
        for (int word = sharer; word < WORDS && first + word * 32 < positions; word += sharers)
          multiply(bits + parity * room, own, word);
    }
    for (int other = 1; other < sharers; ++other)
      take_over(sharer, other, own);
    if (sharer == 0)
      put(own);
  }

private:
  const GradientTask &task;
  const Field &field;
  const int lane, warp;
  int part, first_channel, group, slice, first_row, rows;
  Quad *deltas;
  float *numbers;
  std::uint32_t *bits;
  float sums[DOWN][ACROSS][4] = {};

  /// Number of weights of a channel, plus one for the bias, which reads ones.
  DEVICE int patch() const { return field.patch() + (task.bias ? 1 : 0); }
  DEVICE int first_weight() const { return part * task.warps_down * DOWN * 16; }

  /// A quad contains a lane's part of a fragment, high and low parts. Quads of odd channels are placed such that eight lanes read all banks.
  DEVICE static int quad_place(int channel, int word, int unit, int column) {
    return (channel * WORDS + word) * 8 + ((unit * 4 + column) ^ (channel & 1) * 4);
  }

  /// Starts to copy deltas from a position of a row of the slice on; `left`: positions up to its end. Each thread copies one position.
  DEVICE void fetch_deltas(int image, int position, int left) {
    constexpr int TOGETHER = GRADIENT_THREADS / POSITIONS;
    const int all = field.positions(), further = thread_index() % POSITIONS, begin = thread_index() / POSITIONS;
    const Counted at(task, first_row + image, position, further);
    const float *from = task.deltas;
    const int known = least(CHANNELS, field.width - first_channel);
    if (further < left)
      from += (static_cast<std::size_t>(at.image) * static_cast<std::size_t>(field.groups * field.width) +
               static_cast<std::size_t>(group * field.width + first_channel + begin)) *
                  static_cast<std::size_t>(all) +
              static_cast<std::size_t>(at.y * field.target[1] + at.x);
    UNROLL(8)
    for (int channel = begin; channel < CHANNELS; channel += TOGETHER) {
      const bool there = further < left && channel < known;
      copy_later(numbers + channel * POSITIONS + further, there ? from : task.deltas, there);
      from += TOGETHER * all;
    }
  }

  DEVICE void split_deltas() {
    UNROLL(4)
    for (int i = thread_index(); i < CHANNELS * WORDS * 8; i += GRADIENT_THREADS) {
      const int column = i / 2 % 4, unit = i % 2, word = i / 8 % WORDS, channel = i / 8 / WORDS;
      const float *from = numbers + channel * POSITIONS + word * 32 + column * 4 + unit * 2;
      Quad split;
      split_pair<Half>(from[0], from[16], split.x, split.z);
      split_pair<Half>(from[1], from[17], split.y, split.w);
      deltas[quad_place(channel, word, unit, column)] = split;
    }
  }

  /// Fills the rows after the weights: ones for the biases, and zeros.
  DEVICE void fill_rest(std::uint32_t *to) {
    const int rows_here = task.warps_down * DOWN * 16;
    for (int i = thread_index(); i < rows_here * STRIDE; i += GRADIENT_THREADS)
      to[i] = first_weight() + i / STRIDE == field.patch() ? ~0u : 0u;
    sync_block();
  }

  DEVICE void fill_bits(int image, int position, std::uint32_t *to) {
    const std::uint32_t *words = task.words + static_cast<std::size_t>(first_row) * static_cast<std::size_t>(task.row_words);
    const int along = field.taps[1], parts = whole_parts(along, TAPS_TOGETHER);
    const int begin = first_weight(), end = least(begin + task.warps_down * DOWN * 16, field.patch());
    const int first_run = begin / along, runs = whole_parts(end, along) - first_run;
    for (int i = thread_index(); i < runs * parts * WORDS; i += GRADIENT_THREADS) {
      const int word = i % WORDS, part = parts == 1 ? 0 : i / WORDS % parts, run = first_run + (parts == 1 ? i / WORDS : i / WORDS / parts);
      const int channel = task.by_down.quotient(run), first_tap = part * TAPS_TOGETHER;
      std::uint32_t found[TAPS_TOGETHER] = {};
      tap_bits(task, words, rows, group * field.depth + channel, run - channel * field.taps[0], first_tap,
               Counted(task, image, position, word * 32), found);
      UNROLL(TAPS_TOGETHER)
      for (int j = 0; j < TAPS_TOGETHER; ++j) {
        const int weight = run * along + first_tap + j;
        if (first_tap + j < along && weight >= begin && weight < end)
          to[(weight - begin) * STRIDE + word] = found[j];
      }
    }
  }

  DEVICE static std::uint32_t pair(std::uint32_t word, int left) { return word << left & 0x40004000u; }

  DEVICE void multiply(const std::uint32_t *from, int own, int word) {
    std::uint32_t read[DOWN][2];
    UNROLL(DOWN)
    for (int i = 0; i < DOWN; ++i)
      UNROLL(2)
    for (int half = 0; half < 2; ++half)
      read[i][half] = from[(own + i * 16 + half * 8 + lane / 4) * STRIDE + word] >> (lane % 4 * 4);
    UNROLL(2)
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
        const Quad found = deltas[quad_place(j * 8 + lane / 4, word, unit, lane % 4)];
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
  DEVICE void take_over(int sharer, int other, int own) {
    float *room = reinterpret_cast<float *>(shared_memory()) + own / 16 * ACROSS * 4 * LANES + lane;
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

  DEVICE void put(int own) const {
    float *to = task.partial + static_cast<std::size_t>(slice) * static_cast<std::size_t>(task.numbers_of_slice);
    UNROLL(DOWN)
    for (int i = 0; i < DOWN; ++i)
      UNROLL(ACROSS)
    for (int j = 0; j < ACROSS; ++j)
      UNROLL(4)
    for (int k = 0; k < 4; ++k) {
      const int weight = first_weight() + own + i * 16 + k / 2 * 8 + lane / 4, channel = first_channel + j * 8 + lane % 4 * 2 + k % 2;
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
