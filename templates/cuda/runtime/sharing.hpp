// A division of samples and neurons among blocks; share_out.hpp chooses it.
#ifndef SNNC_SHARING_HPP
#define SNNC_SHARING_HPP

#include <cstddef>
#include <string>

namespace snnc {

/// Work of a step of one sample: barriers; chunks of neurons, which warps share; in the forward pass, weights selected by lists and weights of
/// products; weights of the backward products; and the maximum rows of both kinds of products that a warp reads for a chunk.
struct Work {
  double levels, chunks, listed, valued, back, valued_rows, back_rows;
};

struct Sharing {
  int team_samples = 1, team_blocks = 1, teams = 1, forward_tile = 1, backward_tile = 1;
  /// Whether each team is a cluster, and all teams are resident at once.
  bool clusters = false;
  /// Bytes of weights in a block's shared memory, forward and backward.
  std::size_t near_bytes = 0;
  int blocks() const { return teams * team_blocks; }
  std::string text() const;
};

} // namespace snnc

#endif
