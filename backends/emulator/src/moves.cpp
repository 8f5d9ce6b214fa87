#include "moves.hpp"

#include <algorithm>
#include <cstring>

namespace poplar::core {

namespace {

template <class T> void moveRows(const Move &m) {
  T *d = reinterpret_cast<T *>(m.destination);
  const T *s = reinterpret_cast<const T *>(m.source);
  const Index n0 = m.n0, n1 = m.n1;
  const bool unit = n0 == 1 || (m.d0 == 1 && m.s0 == 1);
  if (unit && n0 * Index(sizeof(T)) >= 64) {
    for (Index i = 0; i < n1; ++i)
      std::memmove(d + i * m.d1, s + i * m.s1, std::size_t(n0) * sizeof(T));
  } else if (unit && n0 == 1) {
    for (Index i = 0; i < n1; ++i)
      d[i * m.d1] = s[i * m.s1];
  } else if (unit) {
    for (Index i = 0; i < n1; ++i)
      for (Index j = 0; j < n0; ++j)
        d[i * m.d1 + j] = s[i * m.s1 + j];
  } else {
    for (Index i = 0; i < n1; ++i)
      for (Index j = 0; j < n0; ++j)
        d[i * m.d1 + j * m.d0] = s[i * m.s1 + j * m.s0];
  }
}

/// A position in a list of blocks.
struct Cursor {
  const Side &side;
  std::uint32_t bytes;
  std::size_t block = 0;
  Index row = 0, column = 0;

  bool done() const { return block >= side.blocks->size(); }
  const Block &at() const { return (*side.blocks)[block]; }
  bool atStart() const { return row == 0 && column == 0; }
  Index leftInRow() const { return at().n0 - column; }
  char *address() const { return side.bases[at().var] + (at().start + row * at().s1 + column * at().s0) * Index(bytes); }
  void advance(Index n) {
    column += n;
    if (column < at().n0)
      return;
    row += column / at().n0;
    column %= at().n0;
    if (row >= at().n1) {
      ++block;
      row = column = 0;
    }
  }
  void skipBlock() {
    ++block;
    row = column = 0;
  }
};

bool holdsFlat(const Cursor &c, Index n) { return c.at().n1 == 1 && c.leftInRow() >= n; }

/// A move of a whole two-dimensional block, if both sides allow it.
bool takeBlock(Cursor &d, Cursor &s, std::vector<Move> &moves) {
  const Block &to = d.at(), &from = s.at();
  if (d.atStart() && s.atStart() && to.n0 == from.n0 && to.n1 == from.n1) {
    moves.push_back({d.address(), s.address(), to.n0, to.n1, to.s0, to.s1, from.s0, from.s1});
    d.skipBlock();
    s.skipBlock();
    return true;
  }
  if (s.atStart() && from.n1 > 1 && holdsFlat(d, from.size())) {
    moves.push_back({d.address(), s.address(), from.n0, from.n1, to.s0, to.s0 * from.n0, from.s0, from.s1});
    d.advance(from.size());
    s.skipBlock();
    return true;
  }
  if (d.atStart() && to.n1 > 1 && holdsFlat(s, to.size())) {
    moves.push_back({d.address(), s.address(), to.n0, to.n1, to.s0, to.s1, from.s0, from.s0 * to.n0});
    s.advance(to.size());
    d.skipBlock();
    return true;
  }
  return false;
}

} // namespace

void runMove(const Move &move, std::uint32_t elementBytes) {
  switch (elementBytes) {
  case 1:
    return moveRows<std::uint8_t>(move);
  case 2:
    return moveRows<std::uint16_t>(move);
  case 4:
    return moveRows<std::uint32_t>(move);
  default:
    return moveRows<std::uint64_t>(move);
  }
}

void runMoves(const std::vector<Move> &moves, std::uint32_t elementBytes) {
  for (const Move &move : moves)
    runMove(move, elementBytes);
}

std::vector<Move> planMoves(const Side &destination, const Side &source, std::uint32_t elementBytes) {
  std::vector<Move> moves;
  Cursor d{destination, elementBytes}, s{source, elementBytes};
  while (!d.done() && !s.done()) {
    if (takeBlock(d, s, moves))
      continue;
    const Index n = std::min(d.leftInRow(), s.leftInRow());
    moves.push_back({d.address(), s.address(), std::uint32_t(n), 1, d.at().s0, 0, s.at().s0, 0});
    d.advance(n);
    s.advance(n);
  }
  return moves;
}

} // namespace poplar::core
