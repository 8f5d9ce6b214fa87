// Convolutions over many rows on tensor cores: a block keeps a tile of the source in shared memory, with a string of values per pixel, and its
// warps multiply the values of windows, 16 positions by 16 values, by the weights of 8 target channels. Weights and deltas are split into two
// 16-bit values; spikes are exact. Sums are float32.
#ifndef SNNC_WHOLE_WINDOWS_CUH
#define SNNC_WHOLE_WINDOWS_CUH

#include "whole_fields.cuh"

namespace snnc {

constexpr int FIELD_THREADS = 256, FIELD_WARPS = FIELD_THREADS / LANES;
/// Fragments of 16 positions per warp.
constexpr int FIELD_DOWN = 2;
/// Positions per block.
constexpr int FIELD_POSITIONS = FIELD_WARPS * FIELD_DOWN * 16;

/// Arguments of a convolution: the field, its source, the weights, and the destination of sums.
struct FieldTask {
  Field field;
  Cut cut;
  /// Spikes or numbers of row 0; rows from `limit` on count as 0.
  const std::uint32_t *words;
  const float *numbers;
  int row_words, limit;
  /// Split weights, [group][step][8 channels][lane], and the factors of the sums of target channels.
  const Quad *weights;
  const float *scales;
  /// Values added per channel, and per element of a row; null: none.
  const float *bias, *start;
  float *to;
  int rows;
  bool add;
};

/// 32 bits of a string as a tile stores them, with the middle bytes exchanged: a shift and a mask then give a lane its pair of a fragment,
/// bits 2 t + e and 2 t + e + 8, in the two halves of a word.
DEVICE std::uint32_t paired(std::uint32_t bits) { return (bits & 0xff0000ffu) | (bits >> 8 & 0xff00u) | (bits << 8 & 0xff0000u); }

/// A tile of spikes: an odd number of words per pixel, so that neighbours are in different banks.
class BitTile {
public:
  using Half = Float16;
  static constexpr bool BITS = true;
  /// Value of a spike in a fragment.
  static constexpr float ONE = 2.0f;

  ANYWHERE static int words(const Field &field) { return (field.units() + 1) / 2; }
  ANYWHERE static std::size_t pixel_bytes(const Field &field) { return (static_cast<std::size_t>(words(field)) | 1) * 4; }
  /// Number of fillings of the tile that a string needs.
  DEVICE static int fillings(const Field &) { return 1; }
  DEVICE static int filled(const Field &field) { return field.units(); }

  DEVICE BitTile(const FieldTask &given, int first, int lane)
      : task(given), tile(reinterpret_cast<std::uint32_t *>(shared_memory())), shift(lane % 4 * 2) {
    UNROLL(FIELD_DOWN)
    for (int i = 0; i < FIELD_DOWN; ++i)
      UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      const int index = first + i * 16 + half * 8 + lane / 4;
      base[i][half] = Position(task.cut, index < task.cut.positions() ? index : 0).pixel(task.field, task.cut) * stride();
    }
  }

  DEVICE void fill(const Tile &of, int) {
    const Field &field = task.field;
    const int pixels = task.cut.pixels(), count = words(field);
    for (int i = not_known(thread_index()); i < pixels * count; i += FIELD_THREADS) {
      const int index = i % pixels, word = i / pixels;
      const Pixel pixel(field, task.cut, of, index);
      const int row = of.image + pixel.image;
      std::uint32_t found = 0;
      if (row < task.rows && row < task.limit && pixel.y >= 0 && pixel.x >= 0) {
        const std::uint32_t *own = task.words + static_cast<std::size_t>(row) * static_cast<std::size_t>(task.row_words);
        found = paired(field.folded ? across(own, of, pixel.y, pixel.column, word) : channels(own, of, pixel, word));
      }
      tile[index * stride() + word] = found;
    }
  }

  /// The word of each row of a lane's fragments, for a move and units 2 word and 2 word + 1.
  struct Rows {
    std::uint32_t words[FIELD_DOWN][2];
  };
  DEVICE Rows rows(int offset, int unit) const {
    Rows found;
    UNROLL(FIELD_DOWN)
    for (int i = 0; i < FIELD_DOWN; ++i)
      UNROLL(2)
    for (int half = 0; half < 2; ++half)
      found.words[i][half] = tile[base[i][half] + offset * stride() + unit / 2] >> shift;
    return found;
  }
  template <int ACROSS>
  DEVICE static void multiply(float (&sums)[FIELD_DOWN][ACROSS][4], const Rows &rows, int unit, const Quad (&weights)[ACROSS], int lane) {
    const int left = unit % 2 == 0 ? 14 : 6;
    UNROLL(FIELD_DOWN)
    for (int i = 0; i < FIELD_DOWN; ++i) {
      const std::uint32_t a[4] = {pair(rows.words[i][0], left), pair(rows.words[i][1], left), pair(rows.words[i][0], left - 1),
                                  pair(rows.words[i][1], left - 1)};
      UNROLL(ACROSS)
      for (int j = 0; j < ACROSS; ++j) {
        const std::uint32_t high[2] = {weights[j].x, weights[j].y};
        Half::multiply(sums[i][j], a, high, lane);
      }
      UNROLL(ACROSS)
      for (int j = 0; j < ACROSS; ++j) {
        const std::uint32_t low[2] = {weights[j].z, weights[j].w};
        Half::multiply(sums[i][j], a, low, lane);
      }
    }
  }

private:
  const FieldTask &task;
  std::uint32_t *tile;
  int shift;
  int base[FIELD_DOWN][2];

  DEVICE int stride() const { return words(task.field) | 1; }
  /// Returns two bits as two 16-bit numbers, 0 or ONE.
  DEVICE static std::uint32_t pair(std::uint32_t word, int left) { return word << left & 0x40004000u; }

  /// Returns 32 channels of a pixel.
  DEVICE std::uint32_t channels(const std::uint32_t *row, const Tile &of, const Pixel &pixel, int word) const {
    const Field &field = task.field;
    const int values = field.values(), count = least(32, field.depth - word * 32);
    const int first = (of.group * field.depth + word * 32) * values + pixel.y * field.source[1] + pixel.x;
    std::uint32_t found = 0;
    UNROLL(32)
    for (int q = 0; q < 32; ++q)
      if (q < count) {
        const std::uint32_t at = static_cast<std::uint32_t>(first + q * values);
        found |= (row[at / 32] >> (at % 32) & 1u) << q;
      }
    return found;
  }
  /// Returns the values of all channels that the taps along x of a column read.
  DEVICE std::uint32_t across(const std::uint32_t *row, const Tile &of, int y, int column, int word) const {
    const Field &field = task.field;
    const int left = (of.x + column) * field.step[1] + field.start[1], count = least(32, field.string() - word * 32);
    int channel = word * 32 / field.taps[1], tap = word * 32 % field.taps[1];
    std::uint32_t found = 0;
    for (int q = 0; q < count; ++channel, tap = 0) {
      const int run = least(field.taps[1] - tap, count - q), x = left + tap * field.apart[1];
      const int first = ((of.group * field.depth + channel) * field.source[0] + y) * field.source[1] + x;
      if (field.apart[1] == 1) {
        const int begin = most(0, -x), end = least(run, field.source[1] - x);
        if (end > begin)
          found |= bits_between(row, first + begin, end - begin) << (q + begin);
      } else {
        for (int k = 0, place = x; k < run; ++k, place += field.apart[1])
          if (place >= 0 && place < field.source[1])
            found |= bits_between(row, first + place - x, 1) << (q + k);
      }
      q += run;
    }
    return found;
  }
};

/// A tile of numbers, 16 channels at a time: per pixel the high parts, the low parts, and padding that spreads neighbours over the banks.
class SplitTile {
public:
  using Half = BFloat16;
  static constexpr bool BITS = false;
  static constexpr float ONE = 1.0f;
  static constexpr int STRIDE = 80, LOWER = 32;

  ANYWHERE static std::size_t pixel_bytes(const Field &) { return STRIDE; }
  DEVICE static int fillings(const Field &field) { return field.units(); }
  DEVICE static int filled(const Field &) { return 1; }

  DEVICE SplitTile(const FieldTask &given, int first, int lane) : task(given), tile(shared_memory()) {
    UNROLL(FIELD_DOWN)
    for (int i = 0; i < FIELD_DOWN; ++i) {
      const int index = first + i * 16 + lane % 16;
      base[i] = Position(task.cut, index < task.cut.positions() ? index : 0).pixel(task.field, task.cut) * STRIDE + lane / 16 * 16;
    }
  }

  DEVICE void fill(const Tile &of, int filling) {
    const Field &field = task.field;
    const int pixels = task.cut.pixels(), values = field.values();
    for (int i = not_known(thread_index()); i < pixels * 2; i += FIELD_THREADS) {
      const int index = i % pixels, first = filling * 16 + i / pixels * 8;
      const Pixel pixel(field, task.cut, of, index);
      const int row = of.image + pixel.image;
      const bool there = row < task.rows && row < task.limit && pixel.y >= 0 && pixel.x >= 0;
      const float *from = task.numbers +
                          (static_cast<std::size_t>(row) * static_cast<std::size_t>(field.groups * field.depth) +
                           static_cast<std::size_t>(of.group * field.depth + first)) *
                              static_cast<std::size_t>(values) +
                          static_cast<std::size_t>(pixel.y * field.source[1] + pixel.x);
      float found[8];
      UNROLL(8)
      for (int c = 0; c < 8; ++c)
        found[c] = there && first + c < field.depth ? from[static_cast<std::size_t>(c) * static_cast<std::size_t>(values)] : 0.0f;
      Quad high, low;
      split_pair<Half>(found[0], found[1], high.x, low.x);
      split_pair<Half>(found[2], found[3], high.y, low.y);
      split_pair<Half>(found[4], found[5], high.z, low.z);
      split_pair<Half>(found[6], found[7], high.w, low.w);
      char *to = tile + index * STRIDE + i / pixels * 16;
      *reinterpret_cast<Quad *>(to) = high;
      *reinterpret_cast<Quad *>(to + LOWER) = low;
    }
  }

  struct Rows {
    std::uint32_t high[FIELD_DOWN][4], low[FIELD_DOWN][4];
  };
  DEVICE Rows rows(int offset, int) const {
    Rows found;
    UNROLL(FIELD_DOWN)
    for (int i = 0; i < FIELD_DOWN; ++i) {
      load_matrices(found.high[i], tile + base[i] + offset * STRIDE);
      load_matrices(found.low[i], tile + base[i] + offset * STRIDE + LOWER);
    }
    return found;
  }
  template <int ACROSS>
  DEVICE static void multiply(float (&sums)[FIELD_DOWN][ACROSS][4], const Rows &rows, int, const Quad (&weights)[ACROSS], int lane) {
    UNROLL(FIELD_DOWN)
    for (int i = 0; i < FIELD_DOWN; ++i) {
      UNROLL(ACROSS)
      for (int j = 0; j < ACROSS; ++j) {
        const std::uint32_t high[2] = {weights[j].x, weights[j].y};
        Half::multiply(sums[i][j], rows.high[i], high, lane);
      }
      UNROLL(ACROSS)
      for (int j = 0; j < ACROSS; ++j) {
        const std::uint32_t low[2] = {weights[j].z, weights[j].w};
        Half::multiply(sums[i][j], rows.high[i], low, lane);
      }
      UNROLL(ACROSS)
      for (int j = 0; j < ACROSS; ++j) {
        const std::uint32_t high[2] = {weights[j].x, weights[j].y};
        Half::multiply(sums[i][j], rows.low[i], high, lane);
      }
    }
  }

private:
  const FieldTask &task;
  char *tile;
  int base[FIELD_DOWN];
};

/// Returns the position in a string of a lane's element of a weight fragment, given by unit of 16, register, and half of the register.
template <class Kind> DEVICE int string_place(int unit, int lane, int part, int half) {
  return unit * 16 + (Kind::BITS ? half * 8 + lane % 4 * 2 + part : lane % 4 * 2 + part * 8 + half);
}

/// Splits the weights of 8 target channels per block, in the order in which products read them. For spikes, the weights of a channel are scaled
/// by the power of two that brings the largest to the end of the range of float16; `scales` reverses this.
template <class Kind> KERNEL_OF(FIELD_THREADS, 1)
void split_weights_kernel(WHOLE_GRID Field field, const float *weights, int tiles, Quad *to, float *scales) {
  using Half = typename Kind::Half;
  constexpr float HIGHEST = 16384;
  float *most_of = reinterpret_cast<float *>(shared_memory());
  const int group = block_index() / tiles, first = block_index() % tiles * 8, lane = lane_index(), warp = thread_index() / LANES;
  const int units = field.units(), moves = field.moves(), steps = units * moves;
  float scale = 1;
  if (Half::NARROW) {
    float highest = 0;
    for (int i = lane; i < steps * 16; i += LANES) {
      const int at = field.weight(group, first + warp, i / moves, i % moves);
      highest = fmaxf(highest, at < 0 ? 0.0f : fabsf(weights[at]));
    }
    most_of[warp] = warp_highest(highest);
    sync_block();
    // A power of two within the range of float, for all finite weights.
    const int exponent = most(64, least(240, static_cast<int>(bits_of(most_of[lane / 4]) >> 23)));
    scale = number_of(static_cast<std::uint32_t>(253 - exponent) << 23);
    const float back = number_of(static_cast<std::uint32_t>(exponent + 1) << 23);
    if (warp == 0 && lane % 4 == 0)
      scales[block_index() * 8 + lane / 4] = back / (HIGHEST / 2) * (1 / Kind::ONE);
    scale *= HIGHEST / 2;
  }
  for (int step = warp; step < steps; step += FIELD_WARPS) {
    const int unit = Kind::BITS ? step % units : step / moves, move = Kind::BITS ? step / units : step % moves;
    float found[2][2];
    UNROLL(2)
    for (int part = 0; part < 2; ++part)
      UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      const int at = field.weight(group, first + lane / 4, string_place<Kind>(unit, lane, part, half), move);
      found[part][half] = at < 0 ? 0.0f : weights[at] * scale;
    }
    Quad split;
    split_pair<Half>(found[0][0], found[0][1], split.x, split.z);
    split_pair<Half>(found[1][0], found[1][1], split.y, split.w);
    to[((group * steps + step) * tiles + block_index() % tiles) * LANES + lane] = split;
  }
}

/// Stores the sums of a warp's fragments.
template <class Kind, int ACROSS>
DEVICE void put_field(const FieldTask &task, const Tile &of, int thread, const float (&sums)[FIELD_DOWN][ACROSS][4]) {
  const int lane = thread % LANES, first = thread / LANES * FIELD_DOWN * 16, column = of.column * ACROSS;
  const Field &field = task.field;
  const int positions = field.positions(), values = field.groups * field.width * positions;
  float *to = task.to + static_cast<std::size_t>(of.image) * static_cast<std::size_t>(values);
  // Indices of the lane's positions in the target; -1: outside.
  int places[FIELD_DOWN][2];
  UNROLL(FIELD_DOWN)
  for (int i = 0; i < FIELD_DOWN; ++i)
    UNROLL(2)
  for (int half = 0; half < 2; ++half) {
    const int index = first + i * 16 + half * 8 + lane / 4;
    const Position at(task.cut, index);
    const int y = of.y + at.y, x = of.x + at.x;
    const bool there = index < task.cut.positions() && of.image + at.image < task.rows && y < field.target[0] && x < field.target[1];
    places[i][half] = there ? at.image * values + y * field.target[1] + x : -1;
  }
  UNROLL(ACROSS)
  for (int j = 0; j < ACROSS; ++j)
    UNROLL(2)
  for (int k = 0; k < 2; ++k) {
    const int own = (column + j) * 8 + lane % 4 * 2 + k, channel = of.group * field.width + own;
    if (own >= field.width)
      continue;
    const float scale = Kind::Half::NARROW ? task.scales[of.group * task.cut.columns * ACROSS * 8 + own] : 1.0f;
    const float bias = task.bias != nullptr ? task.bias[channel] : 0.0f;
    UNROLL(FIELD_DOWN)
    for (int i = 0; i < FIELD_DOWN; ++i)
      UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      if (places[i][half] < 0)
        continue;
      const int n = places[i][half] + channel * positions;
      float sum = sums[i][j][half * 2 + k] * scale + bias;
      if (task.start != nullptr)
        sum += task.start[n % values];
      to[n] = task.add ? to[n] + sum : sum;
    }
  }
}

template <class Kind, int ACROSS> KERNEL_OF(FIELD_THREADS, 2) void field_kernel(WHOLE_GRID FieldTask task) {
  // Number of units of a string that a lane reads at a time.
  constexpr int TOGETHER = Kind::BITS ? 2 : 1;
  const Field &field = task.field;
  const Tile of(field, task.cut, block_index());
  const int lane = lane_index(), first = thread_index() / LANES * FIELD_DOWN * 16;
  const int units = Kind::filled(field), tiles = task.cut.columns * ACROSS;
  const bool some = first < task.cut.positions();
  // An index takes one register, an address two.
  int weight = (of.group * field.units() * field.moves() * tiles + of.column * ACROSS) * LANES + lane;
  float sums[FIELD_DOWN][ACROSS][4] = {};
  Kind tile(task, first, lane);
  for (int filling = 0, fillings = Kind::fillings(field); filling < fillings; ++filling) {
    if (filling > 0)
      sync_block();
    tile.fill(Tile(field, task.cut, not_known(block_index())), filling);
    sync_block();
    if (!some)
      continue;
    UNROLL(1)
    for (int row = 0; row < field.taps[0]; ++row) {
      int offset = row * field.apart[0] * task.cut.tile[1];
      UNROLL(1)
      for (int column = 0; column < field.across(); ++column, offset += field.apart[1])
        for (int unit = 0; unit < units; unit += TOGETHER) {
          const auto rows = tile.rows(offset, unit);
          UNROLL(TOGETHER)
          for (int each = 0; each < TOGETHER; ++each)
            if (unit + each < units) {
              Quad now[ACROSS];
              UNROLL(ACROSS)
              for (int j = 0; j < ACROSS; ++j)
                now[j] = task.weights[weight + j * LANES];
              weight += tiles * LANES;
              Kind::multiply(sums, rows, each, now, lane);
            }
        }
    }
  }
  // Computed again, because the sums need the registers.
  if (some)
    put_field<Kind, ACROSS>(task, Tile(field, task.cut, not_known(block_index())), not_known(thread_index()), sums);
}

} // namespace snnc

#endif
