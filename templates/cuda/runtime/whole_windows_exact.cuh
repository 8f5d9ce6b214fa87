// Convolutions of numbers over many rows in exact float32: a block keeps a tile of the source and weights in shared memory, and a warp computes
// some target channels at 256 positions. Convolutions that are too small for tiles are computed value by value.
#ifndef SNNC_WHOLE_WINDOWS_EXACT_CUH
#define SNNC_WHOLE_WINDOWS_EXACT_CUH

#include "whole_window_gradients.cuh"
#include "whole_windows.cuh"

namespace snnc {

/// Positions per lane.
constexpr int EXACT_EACH = FIELD_POSITIONS / LANES;

/// Returns the bytes per source channel: its tile, and the weights of a block's target channels.
ANYWHERE std::size_t exact_bytes(const Field &field, int pixels, int channels) {
  return sizeof(float) * static_cast<std::size_t>(pixels + field.moves() * channels);
}

/// Returns the size of the tile before the weights, rounded up because weights are read four at a time.
ANYWHERE int exact_tile(const Cut &cut, int together) { return (cut.pixels() * together + 3) / 4 * 4; }

template <int ACROSS> class ExactField {
public:
  static constexpr int CHANNELS = FIELD_WARPS * ACROSS;

  DEVICE ExactField(const FieldTask &given, int source_channels)
      : task(given), field(given.field), of(given.field, given.cut, block_index()), together(source_channels),
        tile(reinterpret_cast<float *>(shared_memory())), factors(tile + exact_tile(given.cut, source_channels)) {}

  DEVICE void run() {
    const int lane = lane_index(), own = thread_index() / LANES * ACROSS, pixels = task.cut.pixels(), moves = field.moves();
    int base[EXACT_EACH];
    UNROLL(EXACT_EACH)
    for (int i = 0; i < EXACT_EACH; ++i) {
      const int index = lane + i * LANES;
      base[i] = Position(task.cut, index < task.cut.positions() ? index : 0).pixel(field, task.cut);
    }
    float sums[EXACT_EACH][ACROSS] = {};
    for (int first = 0; first < field.depth; first += together) {
      const int count = least(together, field.depth - first);
      if (first > 0)
        sync_block();
      fill(first, count);
      sync_block();
      for (int c = 0; c < count; ++c)
        for (int move = 0; move < moves; ++move) {
          const int offset = c * pixels + move / field.taps[1] * field.apart[0] * task.cut.tile[1] + move % field.taps[1] * field.apart[1];
          const float *weights = factors + (c * moves + move) * CHANNELS + own;
          float now[EXACT_EACH];
          UNROLL(EXACT_EACH)
          for (int i = 0; i < EXACT_EACH; ++i)
            now[i] = tile[base[i] + offset];
          UNROLL(ACROSS)
          for (int j = 0; j < ACROSS; ++j)
            UNROLL(EXACT_EACH)
          for (int i = 0; i < EXACT_EACH; ++i)
            sums[i][j] = fmaf(weights[j], now[i], sums[i][j]);
        }
    }
    put(sums, lane, own);
  }

private:
  const FieldTask &task;
  const Field &field;
  const Tile of;
  const int together;
  float *tile, *factors;

  DEVICE void fill(int first, int count) {
    const int pixels = task.cut.pixels(), values = field.values(), moves = field.moves();
    for (int i = thread_index(); i < pixels; i += FIELD_THREADS) {
      const Pixel pixel(field, task.cut, of, i);
      const int row = of.image + pixel.image;
      const bool there = row < task.rows && row < task.limit && pixel.y >= 0 && pixel.x >= 0;
      const float *from = task.numbers +
                          (static_cast<std::size_t>(row) * static_cast<std::size_t>(field.groups * field.depth) +
                           static_cast<std::size_t>(of.group * field.depth + first)) *
                              static_cast<std::size_t>(values) +
                          static_cast<std::size_t>(pixel.y * field.source[1] + pixel.x);
      UNROLL(4)
      for (int c = 0; c < count; ++c)
        tile[c * pixels + i] = there ? from[static_cast<std::size_t>(c) * static_cast<std::size_t>(values)] : 0.0f;
    }
    const float *weights = reinterpret_cast<const float *>(task.weights);
    for (int i = thread_index(); i < count * moves * CHANNELS; i += FIELD_THREADS) {
      const int at = field.weight(of.group, of.column * CHANNELS + i % CHANNELS, first + i / CHANNELS / moves, i / CHANNELS % moves);
      factors[i] = at < 0 ? 0.0f : weights[at];
    }
  }

  DEVICE void put(const float (&sums)[EXACT_EACH][ACROSS], int lane, int own) const {
    const int positions = field.positions();
    UNROLL(EXACT_EACH)
    for (int i = 0; i < EXACT_EACH; ++i) {
      const int index = lane + i * LANES;
      const Position at(task.cut, index);
      const int row = of.image + at.image, y = of.y + at.y, x = of.x + at.x;
      if (index >= task.cut.positions() || row >= task.rows || y >= field.target[0] || x >= field.target[1])
        continue;
      float *to = task.to + static_cast<std::size_t>(row) * static_cast<std::size_t>(field.groups * field.width * positions);
      UNROLL(ACROSS)
      for (int j = 0; j < ACROSS; ++j) {
        const int channel = of.column * CHANNELS + own + j, n = (of.group * field.width + channel) * positions + y * field.target[1] + x;
        if (channel >= field.width)
          continue;
        float sum = sums[i][j];
        if (task.bias != nullptr)
          sum += task.bias[of.group * field.width + channel];
        if (task.start != nullptr)
          sum += task.start[n];
        to[n] = task.add ? to[n] + sum : sum;
      }
    }
  }
};

template <int ACROSS> KERNEL_OF(FIELD_THREADS, 2) void exact_field_kernel(WHOLE_GRID FieldTask task, int together) {
  ExactField<ACROSS>(task, together).run();
}

/// Computes values of the target one by one per thread: forward, from spikes or numbers, or backward.
KERNEL_OF(FIELD_THREADS, 4) void each_value_kernel(WHOLE_GRID FieldTask task, WHOLE_GRID Windows windows) {
  const Field &field = task.field;
  const int values = field.groups * field.width * field.positions(), depth = field.groups * field.depth * field.values();
  const float *weights = reinterpret_cast<const float *>(task.weights);
  const std::size_t all = static_cast<std::size_t>(task.rows) * static_cast<std::size_t>(values);
  for (std::size_t i = static_cast<std::size_t>(block_index()) * FIELD_THREADS + static_cast<std::size_t>(thread_index()); i < all;
       i += static_cast<std::size_t>(grid_size()) * FIELD_THREADS) {
    const std::size_t row = i / static_cast<std::size_t>(values);
    const int n = static_cast<int>(i % static_cast<std::size_t>(values));
    const float *numbers = task.numbers + row * static_cast<std::size_t>(depth);
    float sum = 0;
    if (row < static_cast<std::size_t>(task.limit))
      sum = field.back              ? window_back(windows, n, numbers, weights)
            : task.words == nullptr ? window_sum(windows, n, numbers, weights)
                                    : window_sum(windows, n, BitRow{task.words + row * static_cast<std::size_t>(task.row_words)}, weights);
    if (task.bias != nullptr)
      sum += task.bias[n / field.positions()];
    if (task.start != nullptr)
      sum += task.start[n];
    task.to[i] = task.add ? task.to[i] + sum : sum;
  }
}

/// Weight gradients from numbers in exact float32: a block computes 64 weights of a channel by 64 channels, 32 positions at a time; a thread 4 by 4.
class NumberGradient {
public:
  static constexpr int SIDE = 64, POSITIONS = 32, STRIDE = SIDE + 4;
  static constexpr std::size_t SHARED = 2 * sizeof(float) * POSITIONS * STRIDE;

  DEVICE explicit NumberGradient(const GradientTask &given)
      : task(given), field(given.field), values(reinterpret_cast<float *>(shared_memory())), deltas(values + POSITIONS * STRIDE) {
    int at = block_index();
    first_weight = at % task.weight_parts * SIDE;
    at /= task.weight_parts;
    first_channel = at % task.channel_parts * SIDE;
    at /= task.channel_parts;
    group = at % field.groups;
    slice = at / field.groups;
    first_row = slice * task.slice_rows;
    rows = least(task.slice_rows, task.rows - first_row);
  }

  DEVICE void run() {
    const int down = thread_index() / 16 * 4, across = thread_index() % 16 * 4, positions = rows * field.positions();
    float sums[4][4] = {};
    for (int first = 0; first < positions; first += POSITIONS) {
      if (first > 0)
        sync_block();
      fill(first, positions);
      sync_block();
      UNROLL(8)
      for (int p = 0; p < POSITIONS; ++p) {
        const Four value = *reinterpret_cast<const Four *>(values + p * STRIDE + down),
                   delta = *reinterpret_cast<const Four *>(deltas + p * STRIDE + across);
        const float left[4] = {value.x, value.y, value.z, value.w}, right[4] = {delta.x, delta.y, delta.z, delta.w};
        UNROLL(4)
        for (int i = 0; i < 4; ++i)
          UNROLL(4)
        for (int j = 0; j < 4; ++j)
          sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
      }
    }
    float *to = task.partial + static_cast<std::size_t>(slice) * static_cast<std::size_t>(task.numbers_of_slice);
    UNROLL(4)
    for (int i = 0; i < 4; ++i)
      UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const int weight = first_weight + down + i, channel = first_channel + across + j, target = group * field.width + channel;
      if (channel < field.width && weight < field.patch() + (task.bias ? 1 : 0))
        to[weight < field.patch() ? target * field.patch() + weight : field.groups * field.width * field.patch() + target] = sums[i][j];
    }
  }

private:
  const GradientTask &task;
  const Field &field;
  float *values, *deltas;
  int first_weight, first_channel, group, slice, first_row, rows;

  DEVICE void fill(int first, int positions) {
    const int lane = lane_index(), taps = field.taps[0] * field.taps[1], all = field.positions();
    const bool some = first + lane < positions;
    const Counted at(task, first / all, first % all, least(lane, positions - 1 - first));
    const std::size_t row = static_cast<std::size_t>(first_row + at.image);
    const float *own = task.numbers + row * static_cast<std::size_t>(field.groups * field.depth * field.values());
    const float *delta = task.deltas +
                         (row * static_cast<std::size_t>(field.groups * field.width) + static_cast<std::size_t>(group * field.width)) *
                             static_cast<std::size_t>(all) +
                         static_cast<std::size_t>(at.y * field.target[1] + at.x);
    for (int i = thread_index() / LANES; i < SIDE; i += GRADIENT_WARPS) {
      const int weight = first_weight + i, target = first_channel + i;
      float value = weight == field.patch() ? 1.0f : 0.0f;
      if (weight < field.patch()) {
        const int channel = task.by_taps.quotient(weight), tap = weight - channel * taps, down = task.by_across.quotient(tap);
        const int y = at.y * field.step[0] + field.start[0] + down * field.apart[0],
                  x = at.x * field.step[1] + field.start[1] + (tap - down * field.taps[1]) * field.apart[1];
        if (y >= 0 && y < field.source[0] && x >= 0 && x < field.source[1])
          value = own[((group * field.depth + channel) * field.source[0] + y) * field.source[1] + x];
      }
      values[lane * STRIDE + i] = value;
      deltas[lane * STRIDE + i] =
          some && target < field.width ? delta[static_cast<std::size_t>(target) * static_cast<std::size_t>(all)] : 0.0f;
    }
  }
};

KERNEL_OF(GRADIENT_THREADS, 2) void number_gradient_kernel(WHOLE_GRID GradientTask task) { NumberGradient(task).run(); }

/// Computes only the gradient of biases: a warp sums the deltas of a channel in a slice.
KERNEL_OF(GRADIENT_THREADS, 4)
void channel_sums_kernel(const float *deltas, int channels, int positions, int rows, int slice_rows, float *partial) {
  const int at = block_index() * GRADIENT_WARPS + thread_index() / LANES, slice = at / channels, channel = at % channels;
  const int first = slice * slice_rows, last = least(rows, first + slice_rows);
  float sum = 0;
  for (int row = first; row < last; ++row) {
    const float *from = deltas + (static_cast<std::size_t>(row) * static_cast<std::size_t>(channels) + static_cast<std::size_t>(channel)) *
                                     static_cast<std::size_t>(positions);
    float more = 0;
    for (int i = lane_index(); i < positions; i += LANES)
      more += from[i];
    sum += more;
  }
  sum = warp_sum(sum);
  if (first < rows && lane_index() == 0)
    partial[at] = sum;
}

} // namespace snnc

#endif
