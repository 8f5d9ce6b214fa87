#include "convolution.hpp"

#include "lists.hpp"
#include "products.hpp"

namespace snnc {

namespace {

std::size_t whole(int n) { return static_cast<std::size_t>(n); }

/// If at most one in this many gradients is nonzero, sums of rows are faster than a matrix product.
constexpr std::size_t SPARSE_PART = 2;

/// Cost of a single product for a neuron close to its threshold, relative to that of a neuron in a matrix product: it reads two vectors.
constexpr std::size_t NEAR_COST = 2;

/// Number of values whose channels stay in the L1 cache during a transposition.
constexpr std::size_t TURNED = 64;

/// to[channel][value] += from[value][channel].
void add_turned(const float *from, std::size_t values, std::size_t channels, float *to) {
  for (std::size_t first = 0; first < values; first += TURNED)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t v = first; v < values && v < first + TURNED; ++v)
        to[c * values + v] += from[v * channels + c];
}

/// Calls move(stored position, element of [out][in / groups][kernel]) for all elements.
struct WeightOrder {
  std::size_t groups, outer, inner, rows, width, line;
  template <class Move> void for_elements(const Move &move) const {
    std::size_t element = 0;
    for (std::size_t output = 0; output < groups * outer; ++output)
      for (std::size_t channel = 0; channel < inner; ++channel)
        for (std::size_t row = 0; row < rows; ++row)
          for (std::size_t tap = 0; tap < width; ++tap, ++element) {
            const std::size_t channels_row = (output / outer * inner + channel) * rows + row;
            move((channels_row * width + (width - 1 - tap)) * line + output % outer, element);
          }
  }
};

} // namespace

Convolution::Convolution(const Windows &given) : windows(given) {}
Convolution::Convolution(const Windows &given, const Windows &read) : windows(given), maximum(read) {}
Convolution::~Convolution() = default;

Parameter Convolution::weight(const char *name) const {
  const std::size_t rows = whole(windows.kernel[0]), width = whole(windows.kernel[1]), inner = whole(windows.group_channels());
  const WeightOrder order{whole(windows.groups), whole(windows.group_outputs()), inner, rows, width, windows.line()};
  const std::size_t numbers = whole(windows.channels) * rows * width * windows.line();
  return {name, whole(windows.outputs) * inner * rows * width, numbers, order_of(order), false};
}

/// Calls add(first weight, first element of the lines of all windows, number of elements) for every run to which value `id` contributes.
template <class Add> void Convolution::for_runs(std::size_t id, const Lines &of, const Add &add) const {
  const Windows &o = windows;
  const int channel = static_cast<int>(id) / o.values(), place = static_cast<int>(id) % o.values();
  const int position[2] = {place / o.size[1] + o.before[0], place % o.size[1] + o.before[1]};
  const std::size_t line = of.line(), group = whole(channel / o.group_channels());
  for (int i = 0; i < o.kernel[0]; ++i) {
    const int down = position[0] - i * o.dilation[0];
    if (down < 0 || down % o.stride[0] != 0 || down / o.stride[0] >= o.output[0])
      continue;
    const std::size_t windows_row = of.at(group, whole(down / o.stride[0]));
    const std::size_t weights_row = (whole(channel) * whole(o.kernel[0]) + whole(i)) * whole(o.kernel[1]);
    if (o.stride[1] == 1 && o.dilation[1] == 1) {
      // Tap j of a value belongs to window position - j; with the taps reversed, taps and windows ascend together.
      const int lowest = position[1] - o.kernel[1] + 1, first = lowest < 0 ? 0 : lowest;
      const int last = position[1] < o.output[1] ? position[1] : o.output[1] - 1;
      if (first <= last)
        add((weights_row + whole(first - lowest)) * line, windows_row + whole(first) * line, whole(last - first + 1) * line);
      continue;
    }
    for (int j = 0; j < o.kernel[1]; ++j) {
      const int along = position[1] - j * o.dilation[1];
      if (along >= 0 && along % o.stride[1] == 0 && along / o.stride[1] < o.output[1])
        add((weights_row + whole(o.kernel[1] - 1 - j)) * line, windows_row + whole(along / o.stride[1]) * line, line);
    }
  }
}

/// Returns lines with margins for windows that do not exist, so that no run is cut at the end of a row; runs of the first row begin above it.
Lines Convolution::lines_of_result() const {
  Lines lines{whole(windows.groups), whole(windows.group_outputs()), whole(windows.output[0]), whole(windows.output[1])};
  if (regular()) {
    lines.margin = whole(std::max(windows.kernel[1] - 1, windows.size[1] + windows.before[1] - windows.output[1]));
    lines.above = whole((windows.kernel[0] - 1) * windows.dilation[0]);
  }
  return lines;
}

/// Calls add(first weight of a row of taps, elements of the row, first element of the lines from which positions count, positions) for
/// every channel and row of taps. The run of windows that a value of the list reaches with this row begins at the value's position.
template <class Add> void Convolution::for_rows_of_taps(const List &list, const Lines &of, Scratch &scratch, const Add &add) const {
  const Windows &o = windows;
  const std::size_t values = whole(o.values()), pitch = of.pitch(), line = of.line(), width = whole(o.kernel[1]) * line;
  // The start of the run of a value at position 0 of the first row.
  const std::size_t left = of.above * pitch + of.margin - whole(o.kernel[1] - 1);
  std::vector<std::uint32_t> &starts = scratch.starts();
  for (std::size_t n = 0; n < list.count;) {
    const std::size_t channel = list.ids[n] / values, first = n;
    const std::size_t own = channel / whole(o.group_channels()) * of.group_numbers();
    starts.clear();
    for (; n < list.count && list.ids[n] < (channel + 1) * values; ++n) {
      const std::size_t place = list.ids[n] - channel * values, row = place / whole(o.size[1]) + whole(o.before[0]);
      starts.push_back(static_cast<std::uint32_t>(row * pitch + place % whole(o.size[1]) + whole(o.before[1])));
    }
    std::size_t from = 0, to = 0;
    for (std::size_t i = 0; i < whole(o.kernel[0]); ++i) {
      const std::size_t up = i * whole(o.dilation[0]) * pitch;
      while (from < starts.size() && starts[from] < up)
        ++from;
      while (to < starts.size() && starts[to] < up + of.rows * pitch)
        ++to;
      const List part{starts.data() + from, list.values == nullptr ? nullptr : list.values + first + from, to - from};
      if (part.count != 0)
        add((channel * whole(o.kernel[0]) + i) * width, width, own + (left - up) * line, part);
    }
  }
}

void Convolution::keep(int steps, int samples) { maximum->keep(steps, samples); }

void Convolution::forward(const Worker &w, const Source &source, int t, const Parameter &weight, const Parameter *bias, Rows &target,
                          int now, Scratch &scratch) {
  const Lines result = lines_of_result();
  float *lines = scratch.numbers(0, result.numbers());
  float *each = nullptr;
  if (bias != nullptr && maximum) {
    each = scratch.numbers(2, result.groups * result.line());
    for (std::size_t c = 0; c < whole(windows.outputs); ++c)
      each[c / result.channels * result.line() + c % result.channels] = bias->value[c];
  }
  const float *weights = weight.value.data();
  for (int b = 0; b < w.count; ++b) {
    std::memset(lines, 0, result.numbers() * sizeof(float));
    const List list = scratch.list(source, w, t, b);
    if (regular())
      for_rows_of_taps(list, result, scratch, [&](std::size_t weight_at, std::size_t width, std::size_t lines_at, const List &places) {
        spread_row(weights + weight_at, width, lines + lines_at, result.line(), places);
      });
    for (std::size_t n = 0; !regular() && n < list.count; ++n) {
      const Vector value = all(list.values == nullptr ? 1.0f : list.values[n]);
      for_runs(list.ids[n], result, [&](std::size_t from, std::size_t to, std::size_t count) {
        for (std::size_t k = 0; k < count; k += LANES)
          store(lines + to + k, load(lines + to + k) + value * load(weights + from + k));
      });
    }
    float *row = target.row(now, w.first + b);
    if (!maximum) {
      result.add_to_row(lines, bias == nullptr ? nullptr : bias->value.data(), row);
      continue;
    }
    float *maxima = scratch.numbers(1, maximum->made().numbers());
    maximum->forward(result, lines, each, maxima, now, w.first + b);
    maximum->made().add_to_row(maxima, nullptr, row);
  }
}

void Convolution::backward(const Worker &w, const Source &source, int delay, const Rows &delta, int t, const Parameter &weight,
                           const Found &found, Scratch &scratch) const {
  const Lines result = lines_of_result(), given = maximum ? maximum->made() : result;
  float *lines = scratch.numbers(0, result.numbers());
  for (int b = 0; b < w.count; ++b) {
    float *arrived = maximum ? scratch.numbers(1, given.numbers()) : lines;
    given.from_row(delta.row(t, w.first + b), arrived);
    if (found.bias != nullptr)
      given.add_sums(arrived, found.bias, scratch.numbers(2, given.line()));
    if (maximum)
      maximum->backward(arrived, result, lines, t, w.first + b);
    if (found.weight != nullptr) {
      const List list = scratch.list(source, w, t - delay, b);
      if (regular())
        for_rows_of_taps(list, result, scratch, [&](std::size_t weight_at, std::size_t width, std::size_t lines_at, const List &places) {
          add_rows(found.weight + weight_at, width, lines + lines_at, result.line(), places);
        });
      for (std::size_t n = 0; !regular() && n < list.count; ++n) {
        const Vector value = all(list.values == nullptr ? 1.0f : list.values[n]);
        for_runs(list.ids[n], result, [&](std::size_t to, std::size_t from, std::size_t count) {
          for (std::size_t k = 0; k < count; k += LANES)
            store(found.weight + to + k, load(found.weight + to + k) + value * load(lines + from + k));
        });
      }
    }
    if (found.adjoint == nullptr || t < delay)
      continue;
    float *row = found.adjoint->row(t - delay, w.first + b);
    if (found.near != nullptr) {
      const List near = found.near->list(w, t - delay, b);
      if (near.count * NEAR_COST < whole(windows.channels * windows.values())) {
        near_gradient(near, weight, result, lines, row);
        continue;
      }
    }
    input_gradient(result, lines, row, scratch);
  }
}

/// Computes the adjoints of single neurons as products of their runs of weights and of gradients.
void Convolution::near_gradient(const List &near, const Parameter &weight, const Lines &of, const float *lines, float *row) const {
  const float *weights = weight.value.data();
  for (std::size_t n = 0; n < near.count; ++n) {
    Vector sum = {};
    for_runs(near.ids[n], of, [&](std::size_t from, std::size_t at, std::size_t count) {
      for (std::size_t k = 0; k < count; k += LANES)
        sum += load(weights + from + k) * load(lines + at + k);
    });
    row[near.ids[n]] += sum_of_lanes(sum);
  }
}

void Convolution::keep_packed() { packed.resize(whole(windows.outputs) * columns()); }

void Convolution::pack(const Parameter &weight, int worker, int workers) {
  const std::size_t inner = whole(windows.group_channels()), rows = whole(windows.kernel[0]), width = whole(windows.kernel[1]);
  const std::size_t line = windows.line(), outer = whole(windows.group_outputs());
  const std::size_t from = whole(windows.outputs) * whole(worker) / whole(workers),
                    to = whole(windows.outputs) * whole(worker + 1) / whole(workers);
  for (std::size_t o = from; o < to; ++o)
    for (std::size_t channel = 0; channel < inner; ++channel)
      for (std::size_t row = 0; row < rows; ++row) {
        const float *taps = weight.value.data() + ((o / outer * inner + channel) * rows + row) * width * line + o % outer;
        float *packed_row = packed.data() + o * columns() + row * tap_row();
        for (std::size_t tap = 0; tap < width; ++tap)
          packed_row[tap * inner + channel] = taps[(width - 1 - tap) * line];
      }
}

/// Adds the gradients of a window, rows of [tap][channel], to the values that it read, [value][channel].
void Convolution::add_back(const float *given, int down, int along, float *back) const {
  const Windows &o = windows;
  const std::size_t inner = whole(o.group_channels()), row = tap_row();
  for (int i = 0; i < o.kernel[0]; ++i, given += row) {
    const int y = down + i * o.dilation[0];
    if (y < 0 || y >= o.size[0])
      continue;
    float *to = back + whole(y * o.size[1]) * inner;
    if (o.dilation[1] == 1 && along >= 0 && along + o.kernel[1] <= o.size[1]) {
      // Taps and values ascend together; the padding of the row is 0, and there is space for it after the last value.
      for (std::size_t n = 0; n < row; n += LANES)
        store_anywhere(to + whole(along) * inner + n, load_anywhere(to + whole(along) * inner + n) + load(given + n));
      continue;
    }
    for (int j = 0; j < o.kernel[1]; ++j) {
      const int x = along + j * o.dilation[1];
      for (std::size_t c = 0; x >= 0 && x < o.size[1] && c < inner; ++c)
        to[whole(x) * inner + c] += given[whole(j) * inner + c];
    }
  }
}

void Convolution::input_gradient(const Lines &of, const float *lines, float *row, Scratch &scratch) const {
  const Windows &o = windows;
  const std::size_t line = of.line(), width = columns(), inner = whole(o.group_channels()), outer = of.channels;
  const std::size_t along = of.across, values = whole(o.values());
  float *given = scratch.numbers(1, along * width);
  // The gradients of all values, with the channels of a value contiguous.
  float *back = scratch.numbers(2, values * inner + LINE);
  for (std::size_t group = 0; group < of.groups; ++group) {
    std::memset(back, 0, (values * inner + LINE) * sizeof(float));
    const float *rows = packed.data() + group * outer * width;
    for (std::size_t i = 0; i < of.rows; ++i) {
      const float *came = lines + of.at(group, i);
      const bool sparse = count_nonzero(came, along * line) * SPARSE_PART < along * outer;
      if (!sparse) {
        std::memset(given, 0, along * width * sizeof(float));
        add_product(along, width, outer, {came, line, 1}, rows, width, given, width);
      }
      const int down = static_cast<int>(i) * o.stride[0] - o.before[0];
      for (std::size_t j = 0; j < along; ++j) {
        if (sparse) {
          const List list = scratch.list(came + j * line, outer);
          if (list.count == 0)
            continue;
          std::memset(given, 0, width * sizeof(float));
          add_rows(given, width, rows, width, list);
        }
        add_back(sparse ? given : given + j * width, down, static_cast<int>(j) * o.stride[1] - o.before[1], back);
      }
    }
    add_turned(back, values, inner, row + group * inner * values);
  }
}

} // namespace snnc
