#include "dense.hpp"

#include "lists.hpp"
#include "products.hpp"

#include <numeric>

namespace snnc {

namespace {

/// If at least one in this many values of a row is nonzero, a matrix product is faster than a sum of rows.
constexpr std::size_t DENSE_PART = 4;

/// If at most one in this many neurons is close to its threshold, single products are faster than a matrix product.
constexpr std::size_t NEAR_PART = 2;

/// Below this number of columns, a matrix product is faster than selecting neurons.
constexpr std::size_t NARROW = 64;

/// From this number of samples on, a row of weights is used for all of them at once.
constexpr int FEW_SAMPLES = 8;

/// Bytes of weights that stay in the L2 cache from one step to the next.
constexpr std::size_t CACHED = 1 << 19;

/// Weights that are read in order are prefetched this many rows ahead.
constexpr std::size_t AHEAD = 8;

bool is_dense(const List &list, std::size_t size) { return list.count * DENSE_PART > size; }

} // namespace

Dense::Dense(std::size_t inputs, std::size_t outputs) : panels(inputs, outputs) {}
Dense::~Dense() = default;

template <class Work> void Dense::with_rows(const Parameter &weight, std::size_t first, const Work &work) const {
  const std::size_t width = panels.width_at(first);
  if (rounded_rows.size() == 0)
    work(weight.value.data() + first * panels.inputs, width);
  else
    work(rounded_rows.data() + first / panels.width * panels.inputs * chunked(panels.width), chunked(width));
}

void fill(const Worker &w, Rows &target, int now, std::initializer_list<const Parameter *> biases) {
  if (biases.size() == 0)
    return target.clear(w, now);
  for (int b = 0; b < w.count; ++b) {
    float *row = target.row(now, w.first + b);
    bool first = true;
    for (const Parameter *bias : biases) {
      const float *added = bias->value.data();
      for (std::size_t i = 0; i < padded(target.size); ++i)
        row[i] = first ? added[i] : row[i] + added[i];
      first = false;
    }
  }
}

void Dense::forward(const Worker &w, const Source &source, int delay, int first, int last, const Parameter &weight, Rows &target,
                    Scratch &scratch) const {
  const std::size_t columns = panels.columns();
  const bool far = source.listed && (last - first) * w.count >= FEW_SAMPLES && panels.numbers() * sizeof(float) > CACHED;
  // A panel that stays in the cache during a block of steps is prefetched once; otherwise, each step reads all rows in order.
  const bool fetched = far && last - first > 1 && panels.inputs * panels.width * sizeof(float) < CACHED;
  for (int t = first; far && !fetched && t < last; ++t)
    stream(w, source, t - delay, weight, target, t, scratch);
  if (far && !fetched)
    return;
  for (std::size_t column = 0; column < columns; column += panels.width)
    with_rows(weight, column, [&](const auto *rows, std::size_t stride) {
      const std::size_t width = panels.width_at(column);
      if (fetched)
        fetch(rows, panels.inputs * stride);
      for (int t = first; t < last; ++t)
        for (int b = 0; b < w.count; ++b) {
          const List list = scratch.list(source, w, t - delay, b);
          if (!source.listed && is_dense(list, panels.inputs)) {
            const View left{source.rows.row(t - delay, w.first + b), source.rows.stride, 1};
            float *result = target.row(t, w.first + b) + column;
            add_product(static_cast<std::size_t>(w.count - b), width, panels.inputs, left, rows, stride, result, target.stride);
            break;
          }
          add_rows(target.row(t, w.first + b) + column, width, rows, stride, list);
        }
    });
}

void Dense::stream(const Worker &w, const Source &source, int t, const Parameter &weight, Rows &target, int now, Scratch &scratch) const {
  Columns &events = scratch.columns;
  events.gather(source, w, now - t, target, now, now + 1, scratch);
  for (std::size_t first = 0; first < panels.columns(); first += panels.width)
    with_rows(weight, first, [&](const auto *rows, std::size_t stride) {
      for (std::size_t i = 0; i < panels.inputs; ++i) {
        fetch(rows + (i + AHEAD) * stride, stride);
        spread_row(rows + i * stride, panels.width_at(first), target.data.data() + first, target.stride, events.of(i));
      }
    });
}

void Dense::keep_rounded() {
  rounded_rows.resize((panels.columns() + panels.width - 1) / panels.width * panels.inputs * chunked(panels.width));
}

void Dense::keep_packed(bool copied) {
  const std::size_t inputs = (panels.inputs + PACKED - 1) / PACKED * PACKED;
  packed.resize(copied && rounded_rows.size() == 0 ? inputs * panels.outputs : 0);
  packed_pairs.resize(copied && rounded_rows.size() != 0 ? inputs * pairs() : 0);
  all.resize(2 * panels.inputs);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(panels.inputs);
  std::iota(all.begin(), middle, 0u);
  std::reverse_copy(all.begin(), middle, middle);
}

void Dense::round(const Parameter &weight, int worker, int workers) {
  const std::size_t from = panels.inputs * static_cast<std::size_t>(worker) / static_cast<std::size_t>(workers);
  const std::size_t to = panels.inputs * static_cast<std::size_t>(worker + 1) / static_cast<std::size_t>(workers);
  for (std::size_t first = 0; first < panels.columns(); first += panels.width) {
    const std::size_t width = panels.width_at(first), stride = chunked(width);
    BFloat16 *rows = rounded_rows.data() + first / panels.width * panels.inputs * chunked(panels.width);
    for (std::size_t i = from; i < to; ++i)
      for (std::size_t column = 0; column < width; ++column)
        rows[i * stride + place_in_chunks(column)] = rounded(weight.value[first * panels.inputs + i * width + column]);
  }
}

void Dense::shared_gradient(const std::vector<Worker> &workers, int part, int parts, const Source &source, int delay, const Rows &delta,
                            int first, int last, float *gradient, bool fresh, Scratch &scratch) const {
  const auto bound = [&](int i) { return panels.inputs * static_cast<std::size_t>(i) / static_cast<std::size_t>(parts); };
  const Part own{workers.data(), workers.size(), bound(part), bound(part + 1)};
  if (own.first < own.last)
    gradient_of(own, source, delay, delta, first, last, gradient, fresh, scratch);
}

void Dense::weight_gradient(const Worker &w, const Source &source, int delay, const Rows &delta, int first, int last, float *gradient,
                            bool fresh, Scratch &scratch) const {
  gradient_of({&w, 1, 0, panels.inputs}, source, delay, delta, first, last, gradient, fresh, scratch);
}

void Dense::gradient_of(const Part &part, const Source &source, int delay, const Rows &delta, int first, int last, float *gradient,
                        bool fresh, Scratch &scratch) const {
  const std::size_t inputs = panels.inputs;
  const Worker &w = part.workers[0];
  if (!source.listed && w.count > 0 && is_dense(scratch.list(source, w, last - 1 - delay, 0), inputs)) {
    std::size_t samples = 0;
    for (std::size_t n = 0; n < part.count; ++n)
      samples += static_cast<std::size_t>(part.workers[n].count);
    for (std::size_t column = 0; column < panels.columns(); column += panels.width) {
      const std::size_t width = panels.width_at(column), rows = part.last - part.first;
      float *const own = gradient + column * inputs + part.first * width;
      if (fresh)
        std::fill_n(own, rows * width, 0.0f);
      for (int t = last - 1; t >= first; --t) {
        const View left{source.rows.row(t - delay, w.first) + part.first, 1, source.rows.stride};
        add_product(rows, width, samples, left, delta.row(t, w.first) + column, delta.stride, own, width);
      }
    }
    return;
  }
  Columns &columns = scratch.columns;
  columns.gather(source, part, delay, delta, first, last, scratch);
  for (std::size_t column = 0; column < panels.columns(); column += panels.width) {
    const std::size_t width = panels.width_at(column);
    float *rows = gradient + column * inputs;
    for (std::size_t i = part.first; i < part.last; ++i) {
      if (fresh)
        std::fill_n(rows + i * width, width, 0.0f);
      add_rows(rows + i * width, width, delta.data.data() + column, delta.stride, columns.of(i - part.first));
    }
  }
}

void Dense::pack(const Parameter &weight, int worker, int workers) {
  const std::size_t inputs = panels.inputs, outputs = panels.outputs, groups = (inputs + PACKED - 1) / PACKED;
  const std::size_t from = groups * static_cast<std::size_t>(worker) / static_cast<std::size_t>(workers);
  const std::size_t to = groups * static_cast<std::size_t>(worker + 1) / static_cast<std::size_t>(workers);
  for (std::size_t i = from * PACKED; i < inputs && i < to * PACKED; ++i)
    for (std::size_t first = 0; first < outputs; first += panels.width) {
      const std::size_t width = panels.width_at(first), last = first + width < outputs ? width : outputs - first;
      const float *row = weight.value.data() + first * inputs + i * width;
      if (rounded_rows.size() != 0) {
        // Panels begin at even columns, because their widths are multiples of a line.
        std::uint32_t *pair = packed_pairs.data() + i / PACKED * PACKED * pairs() + first / 2 * PACKED + i % PACKED;
        for (std::size_t o = 0; o < last; o += 2, pair += PACKED)
          *pair = pair_of(rounded(row[o]), o + 1 < last ? rounded(row[o + 1]) : BFloat16());
        continue;
      }
      float *column = packed.data() + i / PACKED * PACKED * outputs + first * PACKED + i % PACKED;
      for (std::size_t o = 0; o < last; ++o)
        column[o * PACKED] = row[o];
    }
}

void Dense::input_gradient(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                           Scratch &scratch) const {
  first = std::max(first, delay);
  if (first >= last || w.count == 0)
    return;
  if (w.count == 1) {
    // Every other step runs in the opposite direction: the rows that the previous step read last are still in the cache.
    for (int t = last - 1; t >= first; --t) {
      const List every{all.data() + (t % 2 == 0 ? 0 : panels.inputs), nullptr, panels.inputs};
      products_of_sample(delta.row(t, w.first), adjoint.row(t - delay, w.first), weight, every, scratch);
    }
    return;
  }
  if (packed.size() == 0 && packed_pairs.size() == 0)
    return gradient_beside(w, delta, first, last, adjoint, delay, weight, scratch);
  const std::size_t rows = static_cast<std::size_t>(w.count);
  const auto products = [&](const auto &left_of, const auto *right, std::size_t length) {
    for (std::size_t i = 0; i < panels.inputs; i += PACKED)
      for (int t = first; t < last; ++t)
        add_product(rows, std::min(adjoint.stride - i, PACKED), length, left_of(t), right + i * length, PACKED,
                    adjoint.row(t - delay, w.first) + i, adjoint.stride);
  };
  if (rounded_rows.size() == 0)
    return products([&](int t) { return View{delta.row(t, w.first), delta.stride, 1}; }, packed.data(), panels.outputs);
  const std::uint32_t *left = scratch.pairs_of(w, delta, first, last);
  products([&](int t) { return ViewOf<std::uint32_t>{left + static_cast<std::size_t>(t - first) * rows * pairs(), pairs(), 1}; },
           packed_pairs.data(), pairs());
}

void Dense::gradient_beside(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                            Scratch &scratch) const {
  // Number of weight rows that stay in the cache while all samples are processed.
  constexpr std::size_t GROUP = 2 * TILE_ROWS;
  const std::size_t own = static_cast<std::size_t>(w.count), count = static_cast<std::size_t>(last - first) * own,
                    inputs = padded(panels.inputs);
  const std::size_t strips = (count + PACKED - 1) / PACKED;
  const auto samples = [&](const Rows &of, int late, std::size_t row, auto &places) {
    for (std::size_t r = 0; r < BESIDE; ++r) {
      const std::size_t wanted = std::min(row + r, count - 1);
      places[r] = const_cast<float *>(of.row(first + static_cast<int>(wanted / own) - late, w.first + static_cast<int>(wanted % own)));
    }
  };
  // Strips of samples: [strip][neuron][sample]; the last strip is padded to whole lines.
  const auto width_of = [&](std::size_t strip) { return std::min(PACKED, padded(count - strip)); };
  float *const deltas = scratch.numbers(0, padded(panels.width) * padded(count)), *const sums = scratch.numbers(1, inputs * padded(count));
  // The sums have the same order as with a copy of the weights.
  for (std::size_t row = 0; row < padded(count); row += BESIDE) {
    const std::size_t strip = row / PACKED * PACKED;
    const float *places[BESIDE];
    samples(adjoint, delay, row, places);
    lay_beside(places, inputs, sums + strip * inputs + row - strip, width_of(strip));
  }
  for (std::size_t column = 0; column < panels.outputs; column += panels.width) {
    const std::size_t width = panels.width_at(column), used = std::min(width, panels.outputs - column);
    const float *const weights = weight.value.data() + column * panels.inputs;
    for (std::size_t row = 0; row < padded(count); row += BESIDE) {
      const std::size_t strip = row / PACKED * PACKED;
      const float *places[BESIDE];
      samples(delta, 0, row, places);
      for (const float *&place : places)
        place += column;
      lay_beside(places, width, deltas + strip * width + row - strip, width_of(strip));
    }
    for (std::size_t i = 0; i < panels.inputs; i += GROUP) {
      const std::size_t rows = std::min(GROUP, panels.inputs - i), next = rows * width / strips;
      for (std::size_t strip = 0; strip < count; strip += PACKED) {
        fetch(weights + (i + GROUP) * width + strip / PACKED * next, next);
        add_product(rows, width_of(strip), used, View{weights + i * width, width, 1}, deltas + strip * width, width_of(strip),
                    sums + strip * inputs + i * width_of(strip), width_of(strip));
      }
    }
  }
  for (std::size_t row = 0; row < count; row += BESIDE) {
    const std::size_t strip = row / PACKED * PACKED;
    float *places[BESIDE];
    samples(adjoint, delay, row, places);
    set_from_beside(places, std::min(BESIDE, count - row), inputs, sums + strip * inputs + row - strip, width_of(strip));
  }
}

void Dense::near_gradient(const Worker &w, const Rows &delta, int first, int last, Rows &adjoint, int delay, const Parameter &weight,
                          const Source &near, Scratch &scratch) const {
  first = std::max(first, delay);
  if (first >= last || w.count == 0)
    return;
  std::size_t entries = 0;
  for (int t = first; t < last; ++t)
    for (int b = 0; b < w.count; ++b)
      entries += near.list(w, t - delay, b).count;
  const std::size_t rows = static_cast<std::size_t>(last - first) * static_cast<std::size_t>(w.count);
  if (!near.only_listed && (panels.columns() < NARROW || entries * NEAR_PART > rows * panels.inputs))
    return input_gradient(w, delta, first, last, adjoint, delay, weight, scratch);
  if (w.count < FEW_SAMPLES) {
    for (int t = last - 1; t >= first; --t)
      for (int b = 0; b < w.count; ++b)
        products_of_sample(delta.row(t, w.first + b), adjoint.row(t - delay, w.first + b), weight, near.list(w, t - delay, b), scratch);
    return;
  }
  Columns &columns = scratch.columns;
  columns.gather(near, w, delay, delta, first, last, scratch);
  // The products of each neuron are padded to whole groups of DOTS.
  float *const sums = scratch.zeros(entries + DOTS * panels.inputs);
  const auto place = [](std::size_t count) { return (count + DOTS - 1) / DOTS * DOTS; };
  for (std::size_t column = 0; column < panels.columns(); column += panels.width)
    with_rows(weight, column, [&](const auto *weights, std::size_t stride) {
      float *found = sums;
      for (std::size_t i = 0; i < panels.inputs; ++i) {
        const List list = columns.of(i);
        fetch(weights + (i + AHEAD) * stride, stride);
        add_dots(found, weights + i * stride, panels.width_at(column), delta.data.data() + column, delta.stride, list);
        found += place(list.count);
      }
    });
  std::vector<std::uint32_t> &rows_of = scratch.starts();
  rows_of.resize(static_cast<std::size_t>(delta.slots * delta.batch));
  for (int t = first; t < last; ++t)
    for (int b = w.first; b < w.first + w.count; ++b)
      rows_of[delta.index(t, b)] = static_cast<std::uint32_t>(adjoint.index(t - delay, b));
  const float *found = sums;
  for (std::size_t i = 0; i < panels.inputs; ++i) {
    const List list = columns.of(i);
    for (std::size_t e = 0; e < list.count; ++e)
      adjoint.data[rows_of[list.ids[e]] * adjoint.stride + i] += found[e];
    found += place(list.count);
  }
}

void Dense::products_of_sample(const float *delta, float *adjoint, const Parameter &weight, const List &wanted, Scratch &scratch) const {
  float *found = scratch.zeros(wanted.count + DOTS);
  const bool back = wanted.count != 0 && wanted.ids[0] > wanted.ids[wanted.count - 1];
  for (std::size_t first = 0; first < panels.columns(); first += panels.width) {
    const std::size_t column = back ? (panels.columns() - 1) / panels.width * panels.width - first : first;
    with_rows(weight, column, [&](const auto *rows, std::size_t stride) {
      add_dots(found, delta + column, panels.width_at(column), rows, stride, wanted);
    });
  }
  for (std::size_t e = 0; e < wanted.count; ++e)
    adjoint[wanted.ids[e]] += found[e];
}

void bias_gradient(const Worker &w, const Rows &delta, int first, int last, float *gradient) {
  for (int t = last - 1; t >= first; --t)
    for (int b = 0; b < w.count; ++b) {
      const float *row = delta.row(t, w.first + b);
      for (std::size_t i = 0; i < padded(delta.size); ++i)
        gradient[i] += row[i];
    }
}

} // namespace snnc
