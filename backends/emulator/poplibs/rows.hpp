// Operations on whole rows: one vertex per row.
#pragma once

#include "builtin.hpp"

namespace poplibs {

/// Sorts a row of `in` ([rows, n]) into `values` ([rows, k]); `indices` (UNSIGNED_INT [rows, k]) gets the original positions.
void sortRows(Graph &graph, const Tensor &in, const Tensor &values, const Tensor &indices, bool descending, poplar::program::Sequence &prog,
              const std::string &name);
/// out[r][i] = in[r][places[r][i]], with the rows distributed over the tiles.
Tensor permuteRows(Graph &graph, const Tensor &in, const Tensor &places, poplar::program::Sequence &prog, const std::string &name);
/// [rows, k] with the rows distributed over the tiles.
Tensor rowsOverTiles(Graph &graph, const Type &type, std::size_t rows, std::size_t k, const std::string &name);

} // namespace poplibs
