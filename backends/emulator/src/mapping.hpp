// Which tile holds which elements of a variable.
#pragma once

#include <cstdint>
#include <vector>

#include "view.hpp"

namespace poplar::core {

struct Piece {
  Index begin, end;
  std::uint32_t tile;
};

/// Later assignments win over earlier ones; sorted and disjoint after `normalise`.
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
  /// The first piece that ends behind `at`, as an index; pieces().size() when there is none.
  std::size_t find(Index at) const;

private:
  void normalise() const;
  mutable std::vector<Piece> pieces_;
  mutable bool dirty_ = false;
};

} // namespace poplar::core
