// Divides the shared memory of a team's blocks among the matrices that they keep there.
#ifndef SNNC_NEAR_PLACES_HPP
#define SNNC_NEAR_PLACES_HPP

#include "near.hpp"

#include <numeric>
#include <vector>

namespace snnc {

/// A matrix that may be kept in shared memory: its neurons, and words per chunk of neurons.
struct NearMatrix {
  Near *place;
  int neurons, chunk_words;

  int chunks() const { return (neurons + LANES - 1) / LANES; }
  /// Number of chunks per block of a team, and their bytes.
  int own(int team_blocks) const { return chunks() / std::gcd(team_blocks, chunks()); }
  std::size_t bytes(int team_blocks) const {
    return static_cast<std::size_t>(own(team_blocks)) * static_cast<std::size_t>(chunk_words) * sizeof(std::uint32_t);
  }
};

/// Returns whether all matrices fit in `room` bytes of a block.
inline bool all_near(std::size_t room, int team_blocks, const std::vector<NearMatrix> &all) {
  std::size_t bytes = 0;
  for (const NearMatrix &one : all)
    bytes += one.bytes(team_blocks);
  return bytes <= room;
}

/// Allocates matrices in the shared memory of a team's blocks, from byte `begin` to at most `end`; returns the end of the last one.
inline std::size_t place_near(std::size_t begin, std::size_t end, int team_blocks, const std::vector<NearMatrix> &all) {
  for (const NearMatrix &one : all) {
    const int own = one.own(team_blocks);
    const std::size_t bytes = one.bytes(team_blocks);
    *one.place = begin + bytes <= end ? Near{static_cast<int>(begin / sizeof(std::uint32_t)), one.chunks() / own, own * LANES} : Near();
    begin += one.place->there() ? bytes : 0;
  }
  return begin;
}

} // namespace snnc

#endif
