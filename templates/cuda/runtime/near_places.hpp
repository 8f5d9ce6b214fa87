// Matrices that a team's blocks may keep in shared memory.
#ifndef SNNC_NEAR_PLACES_HPP
#define SNNC_NEAR_PLACES_HPP

#include "near.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace snnc {

/// A matrix that may be kept in shared memory: its neurons, and words per chunk of neurons.
struct NearMatrix {
  Near *place;
  int neurons, chunk_words;

  int chunks() const { return (neurons + LANES - 1) / LANES; }
  /// Number of chunks per block of a team, and their bytes.
  int own(int team_blocks) const;
  std::size_t bytes(int team_blocks) const {
    return static_cast<std::size_t>(own(team_blocks)) * static_cast<std::size_t>(chunk_words) * sizeof(std::uint32_t);
  }
};

} // namespace snnc

#endif
