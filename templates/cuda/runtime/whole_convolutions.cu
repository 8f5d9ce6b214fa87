// Convolutions of all rows of a segment at once: choice of the kernel, division into blocks, and launch.
#include "whole_convolutions.hpp"

#include "whole_windows_exact.cuh"

namespace snnc {
namespace {

/// Number of blocks of kernels that compute single values.
constexpr int EACH_BLOCKS = 1056;

int parts(int count, int part) { return (count + part - 1) / part; }

/// Fragments of 8 target channels per warp, and number of parts of a group's channels.
struct Columns {
  int across, count;
  int tiles() const { return across * count; }
};

Columns columns_of(const Field &field) {
  const int tiles = parts(field.width, 8);
  if (tiles <= 2)
    return {tiles, 1};
  if (tiles <= 4)
    return {4, 1};
  // Each part builds its tile again, which costs about as much as the products of a fragment.
  const int by_four = parts(tiles, 4), by_eight = parts(tiles, 8);
  return by_four * 5 < by_eight * 9 ? Columns{4, by_four} : Columns{8, by_eight};
}

/// Returns the field of spikes, with strings as short as products allow.
Field string_field(Field field) {
  Field folded = field;
  folded.folded = true;
  const int plain = field.moves() * field.units(), together = folded.moves() * folded.units();
  return 7 * together < 5 * plain ? folded : field;
}

/// Returns whether fragments would be almost empty, with one or two channels per group.
bool tiny(const Field &field) { return field.depth * field.width <= 4; }

std::size_t weight_quads(const Field &field) {
  return static_cast<std::size_t>(field.groups * field.units() * field.moves() * columns_of(field).tiles()) * LANES;
}

/// Returns the size of split weights and channel scales, in 4-byte elements.
std::size_t weight_numbers(const Field &field) {
  return 4 * weight_quads(field) + static_cast<std::size_t>(field.groups * columns_of(field).tiles() * 8);
}

void start_each(const FieldTask &task, const Windows &windows, const float *weights) {
  FieldTask own = task;
  own.weights = reinterpret_cast<const Quad *>(weights);
  const std::size_t values =
      static_cast<std::size_t>(own.rows) * static_cast<std::size_t>(own.field.groups * own.field.width * own.field.positions());
  const int blocks = static_cast<int>(std::min<std::size_t>(EACH_BLOCKS, (values + FIELD_THREADS - 1) / FIELD_THREADS));
  launch_blocks(each_value_kernel, blocks, FIELD_THREADS, 0, own, windows);
}

template <class Kind, int ACROSS> void start_field(FieldTask task, const float *weights, float *scratch) {
  const int tiles = task.cut.columns * ACROSS;
  Quad *split = reinterpret_cast<Quad *>(scratch);
  float *scales = scratch + 4 * weight_quads(task.field);
  launch_blocks(split_weights_kernel<Kind>, task.field.groups * tiles, FIELD_THREADS, FIELD_WARPS * sizeof(float), task.field, weights,
                tiles, split, scales);
  task.weights = split;
  task.scales = scales;
  launch_blocks(field_kernel<Kind, ACROSS>, task.cut.blocks(task.field), FIELD_THREADS,
                static_cast<std::size_t>(task.cut.pixels()) * Kind::pixel_bytes(task.field), task);
}

/// Convolves on tensor cores; returns false if not even the tile of one position fits.
template <class Kind> bool on_tensor_cores(FieldTask task, const float *weights, float *scratch) {
  const Columns columns = columns_of(task.field);
  task.cut = cut_field(task.field, task.rows, FIELD_POSITIONS, columns.count, HALF_OF_SHARED / Kind::pixel_bytes(task.field));
  if (task.cut.images == 0)
    return false;
  switch (columns.across) {
  case 1:
    start_field<Kind, 1>(task, weights, scratch);
    break;
  case 2:
    start_field<Kind, 2>(task, weights, scratch);
    break;
  case 4:
    start_field<Kind, 4>(task, weights, scratch);
    break;
  default:
    start_field<Kind, 8>(task, weights, scratch);
  }
  return true;
}

template <int ACROSS> bool start_exact(FieldTask task, const float *weights) {
  constexpr int CHANNELS = ExactField<ACROSS>::CHANNELS;
  constexpr std::size_t WANTED = HALF_OF_SHARED / 2;
  const std::size_t most = HALF_OF_SHARED - std::min(HALF_OF_SHARED, exact_bytes(task.field, 0, CHANNELS) + 64);
  task.cut = cut_field(task.field, task.rows, FIELD_POSITIONS, parts(task.field.width, CHANNELS), most / sizeof(float));
  if (task.cut.images == 0)
    return false;
  task.weights = reinterpret_cast<const Quad *>(weights);
  const std::size_t each = exact_bytes(task.field, task.cut.pixels(), CHANNELS);
  const int together = std::max(1, std::min(task.field.depth, static_cast<int>(WANTED / each)));
  launch_blocks(exact_field_kernel<ACROSS>, task.cut.blocks(task.field), FIELD_THREADS, each * static_cast<std::size_t>(together) + 16,
                task, together);
  return true;
}

bool exactly(const FieldTask &task, const float *weights) {
  return task.field.width <= 8    ? start_exact<1>(task, weights)
         : task.field.width <= 16 ? start_exact<2>(task, weights)
         : task.field.width <= 32 ? start_exact<4>(task, weights)
                                  : start_exact<8>(task, weights);
}

FieldTask task_of(const Field &field, const WholeSums &to) {
  FieldTask task{};
  task.field = field;
  task.limit = to.rows;
  task.bias = to.bias;
  task.start = to.start;
  task.to = to.data;
  task.rows = to.rows;
  task.add = to.add;
  return task;
}

int source_values(const Windows &w) { return w.channels * w.size[0] * w.size[1]; }

void read_rows(const Windows &windows, const WholeRows &from, const std::uint32_t *&words, int &row_words, const float *&numbers) {
  row_words = parts(source_values(windows), 32);
  words = from.words == nullptr ? nullptr : from.words + static_cast<std::size_t>(from.lead) * static_cast<std::size_t>(row_words);
  numbers = from.numbers == nullptr ? nullptr
                                    : from.numbers + static_cast<std::size_t>(from.lead) * static_cast<std::size_t>(source_values(windows));
}

/// Division of a weight gradient: fragments per warp, warps, and slices of the rows.
struct GradientCut {
  int down, across, warps_down, weight_parts, channel_parts, slices, slice_rows;
};

int slices_of(int rows, int blocks) { return std::max(1, std::min(rows, GRADIENT_BLOCKS / std::max(1, blocks))); }

GradientCut cut_gradient(const Field &field, int rows, bool spikes) {
  GradientCut cut{};
  const int weights = field.patch() + 1;
  if (spikes) {
    const int tiles = parts(field.width, 8), fragments = parts(weights, 16);
    cut.across = tiles <= 2 ? 2 : tiles <= 4 ? 4 : 8;
    cut.channel_parts = parts(tiles, cut.across);
    // Two or three fragments per warp, whichever leaves fewer warps of a block idle.
    const int two = parts(fragments, 2 * GRADIENT_WARPS) * 2, three = parts(fragments, 3 * GRADIENT_WARPS) * 3;
    cut.down = cut.across < 8 && three < two ? 3 : 2;
    for (cut.warps_down = GRADIENT_WARPS; cut.warps_down > 1 && cut.warps_down / 2 * cut.down >= fragments;)
      cut.warps_down /= 2;
    cut.weight_parts = parts(fragments, cut.down * cut.warps_down);
  } else {
    cut.weight_parts = parts(weights, NumberGradient::SIDE);
    cut.channel_parts = parts(field.width, NumberGradient::SIDE);
  }
  const int wanted = slices_of(rows, cut.weight_parts * cut.channel_parts * field.groups);
  cut.slice_rows = parts(rows, wanted);
  cut.slices = parts(rows, cut.slice_rows);
  return cut;
}

template <int DOWN, int ACROSS> void start_gradient(const GradientTask &task, int blocks) {
  launch_blocks(bit_gradient_kernel<DOWN, ACROSS>, blocks, GRADIENT_THREADS, BitGradient<DOWN, ACROSS>::shared_bytes(task.warps_down),
                task);
}

} // namespace

std::size_t convolution_scratch(const Windows &windows, int rows) {
  const Field forward = forward_field(windows);
  const std::size_t numbers = static_cast<std::size_t>(windows.outputs) * static_cast<std::size_t>(forward.patch() + 1);
  std::size_t found = std::max(weight_numbers(string_field(forward)), weight_numbers(backward_field(windows)));
  for (const bool spikes : {false, true})
    found = std::max(found, numbers * static_cast<std::size_t>(cut_gradient(forward, rows, spikes).slices));
  return std::max(found, static_cast<std::size_t>(windows.outputs) * static_cast<std::size_t>(GRADIENT_BLOCKS));
}

void convolve(const Windows &windows, const WholeRows &from, const float *weights, const WholeSums &to, float *scratch) {
  if (to.rows == 0)
    return;
  FieldTask task = task_of(from.words == nullptr ? forward_field(windows) : string_field(forward_field(windows)), to);
  read_rows(windows, from, task.words, task.row_words, task.numbers);
  if (!tiny(task.field) && (from.words == nullptr ? exactly(task, weights) : on_tensor_cores<BitTile>(task, weights, scratch)))
    return;
  start_each(task, windows, weights);
}

void convolve_back(const Windows &windows, const float *deltas, int shift, int limit, const float *weights, const WholeSums &to,
                   float *scratch) {
  if (to.rows == 0)
    return;
  FieldTask task = task_of(backward_field(windows), to);
  task.numbers = deltas + static_cast<std::ptrdiff_t>(shift) * task.field.groups * task.field.depth * task.field.values();
  task.limit = std::max(0, limit - shift);
  if (tiny(task.field) || !on_tensor_cores<SplitTile>(task, weights, scratch))
    start_each(task, windows, weights);
}

void convolve_gradient(const Windows &windows, const WholeRows &from, const float *deltas, int rows, const Slices &weights,
                       const Slices &biases, float *scratch) {
  if (rows == 0)
    return;
  GradientTask task{};
  task.field = forward_field(windows);
  read_rows(windows, from, task.words, task.row_words, task.numbers);
  const GradientCut cut = cut_gradient(task.field, rows, from.words != nullptr);
  task.deltas = deltas;
  task.rows = rows;
  task.partial = scratch;
  task.bias = biases.data != nullptr;
  task.numbers_of_slice = weights.numbers + (task.bias ? windows.outputs : 0);
  task.slice_rows = cut.slice_rows;
  task.weight_parts = cut.weight_parts;
  task.channel_parts = cut.channel_parts;
  task.warps_down = cut.warps_down;
  task.by_positions = divisor(task.field.positions());
  task.by_width = divisor(task.field.target[1]);
  task.by_taps = divisor(task.field.taps[0] * task.field.taps[1]);
  task.by_down = divisor(task.field.taps[0]);
  task.by_across = divisor(task.field.taps[1]);
  const int blocks = cut.slices * cut.weight_parts * cut.channel_parts * task.field.groups;
  if (from.words == nullptr)
    launch_blocks(number_gradient_kernel, blocks, GRADIENT_THREADS, NumberGradient::SHARED, task);
  else if (cut.across == 8)
    start_gradient<2, 8>(task, blocks);
  else if (cut.across == 4)
    cut.down == 3 ? start_gradient<3, 4>(task, blocks) : start_gradient<2, 4>(task, blocks);
  else
    cut.down == 3 ? start_gradient<3, 2>(task, blocks) : start_gradient<2, 2>(task, blocks);
  add_slices(scratch, cut.slices, task.numbers_of_slice, weights, biases);
}

void convolve_bias_gradient(const Windows &windows, const float *deltas, int rows, const Slices &biases, float *scratch) {
  if (rows == 0)
    return;
  const int wanted = std::max(1, std::min(rows, GRADIENT_BLOCKS)), slice_rows = parts(rows, wanted), slices = parts(rows, slice_rows);
  const int channels = windows.outputs, positions = windows.output[0] * windows.output[1];
  launch_blocks(channel_sums_kernel, parts(slices * channels, GRADIENT_WARPS), GRADIENT_THREADS, 0, deltas, channels, positions, rows,
                slice_rows, scratch);
  add_slices(scratch, slices, channels, biases, biases);
}

} // namespace snnc
