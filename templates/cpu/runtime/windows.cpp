#include "windows.hpp"

#include "vectors.hpp"

namespace snnc {

namespace {

typedef std::int32_t Integers __attribute__((vector_size(4 * LANES)));
typedef std::uint8_t Bytes __attribute__((vector_size(LANES)));

Integers integers(int value) { return Integers{} + value; }

Integers read_bytes(const std::uint8_t *from) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  return reinterpret_cast<Integers>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from))));
#else
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, Integers);
#endif
}

/// Writes integers of at most 255 as bytes.
void write_bytes(Integers numbers, std::uint8_t *to) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  const __m256i all = reinterpret_cast<__m256i>(numbers);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i *>(to), _mm_packus_epi16(words, words));
#else
  const Bytes bytes = __builtin_convertvector(numbers, Bytes);
  std::memcpy(to, &bytes, sizeof bytes);
#endif
}

} // namespace

void Lines::clear_margins(float *lines) const {
  const std::size_t bytes = margin * line() * sizeof(float);
  for (std::size_t group = 0; group < groups && margin != 0; ++group)
    for (std::size_t row = 0; row <= rows; ++row)
      std::memset(lines + at(group, row) - margin * line(), 0, bytes);
}

void Lines::from_row(const float *row, float *lines) const {
  if (line() != channels)
    std::memset(lines, 0, numbers() * sizeof(float));
  else
    clear_margins(lines);
  for (std::size_t c = 0; c < groups * channels; ++c)
    for (std::size_t y = 0; y < rows; ++y) {
      float *column = lines + at(c / channels, y) + c % channels;
      for (std::size_t x = 0; x < across; ++x, ++row)
        column[x * line()] = *row;
    }
}

void Lines::add_to_row(const float *lines, const float *each, float *row) const {
  for (std::size_t c = 0; c < groups * channels; ++c) {
    const float added = each == nullptr ? 0.0f : each[c];
    for (std::size_t y = 0; y < rows; ++y) {
      const float *column = lines + at(c / channels, y) + c % channels;
      for (std::size_t x = 0; x < across; ++x, ++row)
        *row += column[x * line()] + added;
    }
  }
}

void Lines::add_sums(const float *lines, float *gradient, float *sums) const {
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t k = 0; k < line(); k += LANES) {
      Vector sum = {};
      for (std::size_t y = 0; y < rows; ++y)
        for (std::size_t x = 0; x < across; ++x)
          sum += load(lines + at(group, y) + x * line() + k);
      store(sums + k, sum);
    }
    for (std::size_t c = 0; c < channels; ++c)
      gradient[group * channels + c] += sums[c];
  }
}

LineMaximum::LineMaximum(const Windows &given) : windows(given) {}

void LineMaximum::keep(int steps, int samples) {
  slots = steps;
  batch = samples;
  choices.resize(whole(steps) * whole(samples) * made().numbers());
}

bool LineMaximum::tiles() const {
  bool found = true;
  for (int axis = 0; axis < 2; ++axis)
    found = found && windows.before[axis] == 0 && windows.stride[axis] == windows.kernel[axis] && windows.dilation[axis] == 1 &&
            windows.output[axis] * windows.kernel[axis] == windows.size[axis];
  return found;
}

/// Calls work(index of the window, line of its first tap, taps that are not in the padding, number of these taps) for all windows.
template <class Work> void LineMaximum::for_windows(const Lines &taken, const Work &work) const {
  const Windows &o = windows;
  std::vector<Tap> taps;
  for (int group = 0, window = 0; group < o.groups; ++group)
    for (int row = 0; row < o.output[0]; ++row)
      for (int along = 0; along < o.output[1]; ++along, ++window) {
        const int y = row * o.stride[0] - o.before[0], x = along * o.stride[1] - o.before[1];
        const int below = y + (o.kernel[0] - 1) * o.dilation[0], behind = x + (o.kernel[1] - 1) * o.dilation[1];
        const bool inside = y >= 0 && below < o.size[0] && x >= 0 && behind < o.size[1];
        const int top = y < 0 ? y + (-y + o.dilation[0] - 1) / o.dilation[0] * o.dilation[0] : y;
        const int side = x < 0 ? x + (-x + o.dilation[1] - 1) / o.dilation[1] * o.dilation[1] : x;
        // All windows inside have the same taps.
        if (!inside || window == 0 || taps.size() != whole(o.taps())) {
          taps.clear();
          for (int i = top; i < o.size[0] && i <= below; i += o.dilation[0])
            for (int j = side; j < o.size[1] && j <= behind; j += o.dilation[1])
              taps.push_back({static_cast<std::uint8_t>((i - y) / o.dilation[0] * o.kernel[1] + (j - x) / o.dilation[1]),
                              static_cast<std::uint32_t>((whole(i - top) * taken.pitch() + whole(j - side)) * taken.line())});
        }
        work(whole(window), taken.at(whole(group), whole(top)) + whole(side) * taken.line(), taps.data(), taps.size());
      }
}

void LineMaximum::forward(const Lines &taken, const float *lines, const float *each, float *maxima, int t, int sample) {
  const std::size_t line = taken.line(), positions = whole(windows.positions());
  std::uint8_t *choice = slots == 0 ? nullptr : choices.data() + at(t, sample);
  for_windows(taken, [&](std::size_t window, std::size_t first, const Tap *taps, std::size_t count) {
    for (std::size_t k = 0; k < line; k += LANES) {
      const float *from = lines + first + k;
      const Vector added = each == nullptr ? Vector{} : load(each + window / positions * line + k);
      Vector best = load(from) + added;
      Integers chosen = integers(taps[0].number);
      for (std::size_t n = 1; n < count; ++n) {
        const Vector value = load(from + taps[n].behind) + added;
        // Of equal values, the first is chosen.
        const Integers larger = value > best;
        best = larger ? value : best;
        chosen = larger ? integers(taps[n].number) : chosen;
      }
      store(maxima + window * line + k, best);
      if (choice != nullptr)
        write_bytes(chosen, choice + window * line + k);
    }
  });
}

void LineMaximum::backward(const float *maxima, const Lines &taken, float *lines, int t, int sample) const {
  const std::size_t line = taken.line();
  const std::uint8_t *choice = choices.data() + at(t, sample);
  const bool once = tiles();
  if (once)
    taken.clear_margins(lines);
  else
    std::memset(lines, 0, taken.numbers() * sizeof(float));
  for_windows(taken, [&](std::size_t window, std::size_t first, const Tap *taps, std::size_t count) {
    for (std::size_t k = 0; k < line; k += LANES) {
      const Integers chosen = read_bytes(choice + window * line + k);
      const Vector given = load(maxima + window * line + k);
      for (std::size_t n = 0; n < count; ++n) {
        float *to = lines + first + taps[n].behind + k;
        const Vector mine = chosen == integers(taps[n].number) ? given : Vector{};
        store(to, once ? mine : load(to) + mine);
      }
    }
  });
}

} // namespace snnc
