// Sparse matrices as dense ones for one operation, in blocks.
#pragma once

#include <popsparse/detail/Blocks.hpp>

#include <poplar/Program.hpp>

#include "builtin.hpp"

namespace popsparse::detail {

using poplibs::Graph;
using poplibs::Tensor;
using poplibs::Type;
using poplar::program::Sequence;

/// A matrix that is temporarily dense: [rows, columns] in blocks.
struct Grid {
  Shape size, block;

  std::size_t across() const { return size[1] / block[1]; }
  std::size_t blocks() const { return size[0] / block[0] * across(); }
  std::size_t elements() const { return block[0] * block[1]; }
  /// [blocks, elements] as [rows, columns], and the inverse.
  Tensor asMatrix(const Tensor &table) const {
    return table.reshape({size[0] / block[0], across(), block[0], block[1]}).dimShuffle({0, 2, 1, 3}).reshape({size[0], size[1]});
  }
  Tensor asTable(const Tensor &matrix) const {
    return matrix.reshape({size[0] / block[0], block[0], across(), block[1]}).dimShuffle({0, 2, 1, 3}).reshape({blocks(), elements()});
  }
};

/// Requires the library, and options that popsparse has.
void start(Graph &graph, const poplar::OptionFlags &options, const std::string &name);
/// A new tensor in equal parts on the tiles.
Tensor linear(Graph &graph, const Type &type, const std::vector<std::size_t> &shape, const std::string &name);
Tensor constantPlaces(Graph &graph, const std::vector<unsigned> &places, const std::string &name);
/// [rows, columns] with the blocks of `values` at `places` ([n, 1]).
Tensor densified(Graph &graph, const Tensor &values, const Tensor &places, const Grid &grid, Sequence &prog, const std::string &name);
/// The blocks of a dense matrix at `places`, one after the other.
Tensor picked(Graph &graph, const Tensor &matrix, const Tensor &places, const Grid &grid, Sequence &prog, const std::string &name);
Tensor multiplied(Graph &graph, const Tensor &a, const Tensor &b, const Type &type, Sequence &prog, const std::string &name);
void requireMatrix(const Tensor &t, const std::vector<std::size_t> &shape, const std::string &what);

} // namespace popsparse::detail
