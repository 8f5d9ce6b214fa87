#include "lists.hpp"

#include "vectors.hpp"

#include <array>

namespace snnc {

namespace {

#if defined(__AVX2__) && !defined(__AVX512F__)
/// For each set of eight lanes, the indices of its lanes in ascending order, one byte each.
constexpr std::array<std::uint64_t, 256> lanes_of_sets() {
  std::array<std::uint64_t, 256> lanes{};
  for (std::uint64_t set = 0; set < 256; ++set)
    for (std::uint64_t lane = 8; lane-- != 0;)
      if ((set >> lane & 1) != 0)
        lanes[set] = lanes[set] << 8 | lane;
  return lanes;
}
constexpr std::array<std::uint64_t, 256> LANES_OF_SETS = lanes_of_sets();
#endif

} // namespace

std::size_t find_nonzero(const float *row, std::size_t size, std::uint32_t *ids, float *values) {
  std::size_t count = 0, i = 0;
  // Inputs are read from memory. They are prefetched half a page ahead, because the hardware prefetcher stops at the end of a page.
  [[maybe_unused]] constexpr std::size_t AHEAD = 512;
#if defined(__AVX512F__)
  __m512i id = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (; i + 16 <= size; i += 16) {
    __builtin_prefetch(row + i + AHEAD);
    const __m512 x = _mm512_loadu_ps(row + i);
    const __mmask16 found = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    _mm512_storeu_si512(ids + count, _mm512_maskz_compress_epi32(found, id));
    if (values != nullptr)
      _mm512_storeu_ps(values + count, _mm512_maskz_compress_ps(found, x));
    // Converted explicitly: GCC 12 stores the 16 bits of `found` on the stack, if it must, and counts the bits of 32.
    count += static_cast<std::size_t>(__builtin_popcount(_cvtmask16_u32(found)));
    id = _mm512_add_epi32(id, _mm512_set1_epi32(16));
  }
#elif defined(__AVX2__)
  for (; i + 8 <= size; i += 8) {
    __builtin_prefetch(row + i + AHEAD);
    const __m256 x = _mm256_loadu_ps(row + i);
    const int found = _mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_UQ));
    const __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(LANES_OF_SETS[static_cast<std::size_t>(found)])));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(ids + count), _mm256_add_epi32(lanes, _mm256_set1_epi32(static_cast<int>(i))));
    if (values != nullptr)
      _mm256_storeu_ps(values + count, _mm256_permutevar8x32_ps(x, lanes));
    count += static_cast<std::size_t>(__builtin_popcount(static_cast<unsigned>(found)));
  }
#endif
  for (; i < size; ++i) {
    ids[count] = static_cast<std::uint32_t>(i);
    if (values != nullptr)
      values[count] = row[i];
    count += row[i] != 0.0f;
  }
  return count;
}

void Lists::restart(int samples, bool with_values, std::size_t rows) {
  own = static_cast<std::size_t>(samples);
  valued = with_values;
  used = 0;
  begin.assign(1, 0);
  begin.reserve(rows + 1);
}

void Lists::grow(std::size_t more) {
  // Grows by an eighth each time, because lists are long and larger steps would waste memory.
  const std::size_t wanted = used + more <= ids.size() ? ids.size() : std::max(used + more, ids.size() + ids.size() / 8);
  ids.reserve(wanted);
  ids.resize(wanted);
  if (valued) {
    values.reserve(wanted);
    values.resize(wanted);
  }
}

void Lists::append(const float *row, std::size_t size) {
  grow(size + LINE);
  used += find_nonzero(row, size, ids.data() + used, valued ? values.data() + used : nullptr);
  begin.push_back(used);
}

void Lists::append(const List &list) {
  grow(list.count);
  std::copy_n(list.ids, list.count, ids.data() + used);
  if (valued)
    for (std::size_t i = 0; i < list.count; ++i)
      values[used + i] = list.values == nullptr ? 1.0f : list.values[i];
  used += list.count;
  begin.push_back(used);
}

namespace {

std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

} // namespace

std::size_t Lists::limit_last(std::size_t capacity, float key, int step) {
  const std::size_t from = begin[begin.size() - 2], count = used - from;
  if (count <= capacity)
    return 0;
  if (key >= 0.0f) {
    // Keeps the ids with the lowest scores, in ascending order.
    const std::uint32_t of_step = mixed(static_cast<std::uint32_t>(key) * 0x9E3779B1u + static_cast<std::uint32_t>(step) * 0x85EBCA77u);
    std::vector<std::uint64_t> scored(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t id = ids[from + i];
      scored[i] = static_cast<std::uint64_t>(mixed(of_step + id * 0xC2B2AE3Du)) << 32 | id;
    }
    std::nth_element(scored.begin(), scored.begin() + static_cast<std::ptrdiff_t>(capacity), scored.end());
    for (std::size_t i = 0; i < capacity; ++i)
      ids[from + i] = static_cast<std::uint32_t>(scored[i]);
    std::sort(ids.begin() + static_cast<std::ptrdiff_t>(from), ids.begin() + static_cast<std::ptrdiff_t>(from + capacity));
  }
  used = from + capacity;
  begin.back() = used;
  return count - capacity;
}

void SpikeLimit::apply(Lists &to, int step) const {
  if (capacity == nullptr)
    return;
  const std::size_t gone = to.limit_last(static_cast<std::size_t>((*capacity)[0]), (*key)[0], step);
  if (gone != 0)
    dropped->fetch_add(gone, std::memory_order_relaxed);
}

double Source::share() const {
  double entries = 0, numbers = 0;
  for (const Lists &own : lists) {
    entries += static_cast<double>(own.entries());
    numbers += static_cast<double>(own.rows()) * static_cast<double>(rows.size);
  }
  return numbers == 0 ? -1 : entries / numbers;
}

void Source::list_rows(const Worker &w, int t) {
  Lists &own = lists[static_cast<std::size_t>(w.index)];
  for (int b = 0; b < w.count; ++b) {
    own.append(rows.row(t, w.first + b), rows.size);
    limit.apply(own, t);
  }
}

void Source::forget_dropped(const Worker &w, int t, Source &near) const {
  for (int b = 0; b < w.count; ++b) {
    const List kept = list(w, t, b);
    const float *row = rows.row(t, w.first + b);
    float *own = near.rows.row(t, w.first + b);
    for (std::size_t i = 0, e = 0; i < rows.size; ++i) {
      if (row[i] == 0.0f)
        continue;
      if (e < kept.count && kept.ids[e] == i)
        ++e;
      else
        own[i] = 0.0f;
    }
  }
}

void Columns::gather(const Source &source, const Part &part, int delay, const Rows &delta, int first, int last, Scratch &scratch) {
  const std::size_t size = part.last - part.first;
  begin.assign(size + 1, 0);
  valued = false;
  const std::size_t before = source.listed ? part.first : 0;
  for (int t = first; t < last; ++t)
    for (std::size_t n = 0; n < part.count; ++n)
      for (int b = 0; b < part.workers[n].count; ++b) {
        const List list = scratch.list(source, part.workers[n], t - delay, b, part.first, part.last);
        valued = list.values != nullptr;
        for (std::size_t e = 0; e < list.count; ++e)
          ++begin[list.ids[e] - before + 1];
      }
  for (std::size_t i = 0; i < size; ++i)
    begin[i + 1] += begin[i];
  make_room(row, begin[size]);
  make_room(value, valued ? begin[size] : 0);
  // Last steps first, like the blocks, so that sums over a neuron's events do not depend on the boundaries of blocks.
  for (int t = last - 1; t >= first; --t)
    for (std::size_t n = 0; n < part.count; ++n)
      for (int b = 0; b < part.workers[n].count; ++b) {
        const List list = scratch.list(source, part.workers[n], t - delay, b, part.first, part.last);
        const std::uint32_t place = static_cast<std::uint32_t>(delta.index(t, part.workers[n].first + b));
        for (std::size_t e = 0; e < list.count; ++e) {
          const std::size_t to = begin[list.ids[e] - before]++;
          row[to] = place;
          if (valued)
            value[to] = list.values[e];
        }
      }
  for (std::size_t i = size; i > 0; --i)
    begin[i] = begin[i - 1];
  begin[0] = 0;
}

const std::uint32_t *Scratch::pairs_of(const Worker &w, const Rows &rows, int first, int last) {
  const std::size_t count = (rows.size + 1) / 2, whole = rows.size / 2;
  const std::size_t wanted = count * static_cast<std::size_t>(w.count) * static_cast<std::size_t>(last - first);
  make_room(pairs, wanted);
  std::uint32_t *to = pairs.data();
  for (int t = first; t < last; ++t)
    for (int b = 0; b < w.count; ++b, to += count) {
      const float *row = rows.row(t, w.first + b);
      for (std::size_t k = 0; k < whole; ++k)
        to[k] = pair_of(rounded(row[2 * k]), rounded(row[2 * k + 1]));
      if (whole != count)
        to[whole] = pair_of(rounded(row[2 * whole]), 0);
    }
  return pairs.data();
}

} // namespace snnc
