// Moves of elements between positions in host memory.
#pragma once

#include <cstdint>
#include <vector>

#include "view.hpp"

namespace poplar::core {

/// n1 rows of n0 elements; strides are in elements.
struct Move {
  char *destination;
  const char *source;
  std::uint32_t n0, n1;
  Index d0, d1, s0, s1;
};

void runMove(const Move &move, std::uint32_t elementBytes);
void runMoves(const std::vector<Move> &moves, std::uint32_t elementBytes);

/// One side of a move: blocks of variables whose storage begins at `bases[var]`.
struct Side {
  const std::vector<Block> *blocks;
  char *const *bases;
};

/// The moves that copy the elements of `source`, in order, to those of `destination`.
std::vector<Move> planMoves(const Side &destination, const Side &source, std::uint32_t elementBytes);

} // namespace poplar::core
