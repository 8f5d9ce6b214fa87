// Lists of the neurons that fired, and sums over them: each warp lists bits in ascending order and adds rows in this order.
#ifndef SNNC_EVENTS_HPP
#define SNNC_EVENTS_HPP

#include "sources.hpp"
#include "teams.hpp"

namespace snnc {

/// Writes the positions of all set bits of the lanes' words to `ids`, ascending; returns their number.
DEVICE int list_bits(std::uint32_t word, int lane, std::uint16_t *ids) {
  const int own = bits_set(word);
  int upto = own;
  UNROLL(5)
  for (int distance = 1; distance < LANES; distance *= 2) {
    const int before = shuffle_up(upto, distance);
    upto += lane >= distance ? before : 0;
  }
  const int count = shuffle(upto, LANES - 1);
  for (int to = upto - own; word != 0; word &= word - 1, ++to)
    ids[to] = static_cast<std::uint16_t>(lane * 32 + lowest_bit(word));
  sync_warp();
  return count;
}

/// Returns the word that begins at bit `start`, masked to bits first ... last - 1.
DEVICE std::uint32_t word_between(const std::uint32_t *words, int start, int first, int last) {
  if (start >= last || start + 32 <= first)
    return 0;
  std::uint32_t word = words[start / 32];
  if (start < first)
    word &= ~0u << (first - start);
  if (start + 32 > last)
    word &= ~0u >> (start + 32 - last);
  return word;
}

/// Adds the rows of the first `count` listed ids, in order.
template <class Number> DEVICE float add_rows(float sum, int count, const Number *rows, int stride, const Warp &warp) {
  constexpr int AHEAD = 8;
  int k = 0;
  for (; k + AHEAD <= count; k += AHEAD) {
    float found[AHEAD];
    UNROLL(8)
    for (int j = 0; j < AHEAD; ++j)
      found[j] = rows[static_cast<std::size_t>(warp.ids[k + j]) * static_cast<std::size_t>(stride)];
    UNROLL(8)
    for (int j = 0; j < AHEAD; ++j)
      sum += found[j];
  }
  for (; k < count; ++k)
    sum += rows[static_cast<std::size_t>(warp.ids[k]) * static_cast<std::size_t>(stride)];
  sync_warp();
  return sum;
}

/// Sets the values at events to 1; a warp processes a row, whose ids ascend.
DEVICE void mark(const std::uint64_t *begin, const std::uint32_t *ids, int rows, int words, bool bits, std::uint32_t *to,
                 const Warp &warp) {
  for (int row = warp.index; row < rows; row += warp.count) {
    std::uint32_t *own = to + static_cast<std::size_t>(row) * static_cast<std::size_t>(words);
    for (std::uint64_t e = begin[row] + static_cast<std::uint64_t>(warp.lane), last = begin[row + 1]; e < last; e += LANES)
      if (bits)
        add_bits(own + ids[e] / 32, 1u << (ids[e] % 32));
      else
        reinterpret_cast<float *>(own)[ids[e]] = 1.0f;
  }
}

/// Packs numbers into bits; raises the flags of the device and of the host if a number is neither 0 nor 1.
DEVICE void pack(const float *numbers, int rows, int values, std::uint32_t *bits, int *flag, int *host_flag, const Warp &warp) {
  // Number of words whose numbers a warp loads at a time.
  constexpr int AHEAD = 4;
  const int words = whole_parts(values, 32);
  const long long all = static_cast<long long>(rows) * words;
  for (long long first = static_cast<long long>(warp.index) * AHEAD; first < all; first += static_cast<long long>(warp.count) * AHEAD) {
    float found[AHEAD];
    UNROLL(4)
    for (int i = 0; i < AHEAD; ++i) {
      const long long at = first + i, row = at / words;
      const int value = static_cast<int>(at % words) * 32 + warp.lane;
      found[i] = at < all && value < values ? numbers[row * values + value] : 0.0f;
    }
    UNROLL(4)
    for (int i = 0; i < AHEAD; ++i) {
      const std::uint32_t word = ballot(found[i] != 0.0f), wrong = ballot(found[i] != 0.0f && found[i] != 1.0f);
      if (warp.lane == 0 && first + i < all) {
        bits[first + i] = word;
        if (wrong != 0) {
          raise_flag(flag);
          raise_host_flag(host_flag);
        }
      }
    }
  }
}

} // namespace snnc

#endif
