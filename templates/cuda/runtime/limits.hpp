// Spike limits: if more neurons fire than a source may send, the lowest ids or those with the lowest random scores are sent.
#ifndef SNNC_LIMITS_HPP
#define SNNC_LIMITS_HPP

#include "device.hpp"

namespace snnc {

/// Maximum number of spikes that a source sends per step, and the random key (negative: lowest ids first): parameters of the network.
struct SpikeLimit {
  const float *capacity, *key;
};

/// A bijection of 32-bit unsigned integers in which every result bit depends on all bits.
DEVICE std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x85EBCA6Bu;
  x = (x ^ x >> 13) * 0xC2B2AE35u;
  return x ^ x >> 16;
}

/// Returns the lowest `count` set bits.
DEVICE std::uint32_t lowest_bits(std::uint32_t word, int count) {
  std::uint32_t left = word;
  for (int i = 0; i < count; ++i)
    left &= left - 1;
  return word ^ left;
}

/// Returns the set bits of a word whose scores are below a bound; `first` is the id of bit 0.
DEVICE std::uint32_t bits_below(std::uint32_t word, int first, std::uint32_t of_step, std::uint32_t bound) {
  std::uint32_t found = 0;
  for (std::uint32_t left = word; left != 0; left &= left - 1) {
    const std::uint32_t id = static_cast<std::uint32_t>(first + lowest_bit(left));
    found |= mixed(of_step + id * 0xC2B2AE3Du) < bound ? left & (0u - left) : 0u;
  }
  return found;
}

/// Writes the spikes of a row that are sent at a step to `sent`, which may be the row itself; returns the number of dropped spikes. All
/// lanes of a warp must call it.
DEVICE int limit_row(const std::uint32_t *spikes, int words, const SpikeLimit &limit, int step, std::uint32_t *sent, int lane) {
  const int capacity = static_cast<int>(*limit.capacity);
  const float key = *limit.key;
  int own = 0;
  for (int word = lane; word < words; word += LANES)
    own += bits_set(spikes[word]);
  const int all = warp_sum(own), dropped = most(0, all - capacity);
  if (dropped == 0) {
    for (int word = lane; word < words; word += LANES)
      sent[word] = spikes[word];
  } else if (key < 0.0f) {
    int before = 0;
    for (int first = 0; first < words; first += LANES) {
      const std::uint32_t bits = first + lane < words ? spikes[first + lane] : 0;
      int upto = bits_set(bits);
      UNROLL(5)
      for (int distance = 1; distance < LANES; distance *= 2) {
        const int lower = shuffle_up(upto, distance);
        upto += lane >= distance ? lower : 0;
      }
      const int left = most(0, capacity - before - (upto - bits_set(bits)));
      if (first + lane < words)
        sent[first + lane] = lowest_bits(bits, least(left, bits_set(bits)));
      before += shuffle(upto, LANES - 1);
    }
  } else {
    // All scores differ, so some bound separates the spikes to send; its bits are determined from the highest on.
    const std::uint32_t of_step = mixed(static_cast<std::uint32_t>(key) * 0x9E3779B1u + static_cast<std::uint32_t>(step) * 0x85EBCA77u);
    std::uint32_t bound = 0;
    for (int bit = 31; bit >= 0; --bit) {
      const std::uint32_t higher = bound | 1u << bit;
      int below = 0;
      for (int word = lane; word < words; word += LANES)
        below += bits_set(bits_below(spikes[word], 32 * word, of_step, higher));
      bound = warp_sum(below) <= capacity ? higher : bound;
    }
    for (int word = lane; word < words; word += LANES)
      sent[word] = bits_below(spikes[word], 32 * word, of_step, bound);
  }
  return dropped;
}

/// Returns whether a spike of a row was dropped.
DEVICE bool is_dropped(const std::uint32_t *spikes, const std::uint32_t *sent, int id) {
  return ((spikes[id / 32] & ~sent[id / 32]) >> (id % 32) & 1u) != 0;
}

} // namespace snnc

#endif
