// The tile of each element of a variable.
#pragma once

#include <cstdint>
#include <vector>

#include "view.hpp"

namespace poplar::core {

struct Piece {
  Index begin, end;
  std::uint32_t tile;
};

/// Later assignments override earlier ones; sorted and disjoint after `normalise`.
class TileMap {
public:
  void assign(Index begin, Index end, std::uint32_t tile) {
    dirty_ = true;
    pieces_.push_back({begin, end, tile});
  }
  const std::vector<Piece> &pieces() const {
    if (dirty_)
      normalise();
    return pieces_;
  }
  /// Index of the first piece that ends after `at`; pieces().size() if there is none.
  std::size_t find(Index at) const;

private:
  void normalise() const;
  mutable std::vector<Piece> pieces_;
  mutable bool dirty_ = false;
};

} // namespace poplar::core
