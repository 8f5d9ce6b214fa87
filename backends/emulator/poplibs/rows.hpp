// Operations on whole rows: one vertex a row.
#pragma once

#include "builtin.hpp"

namespace poplibs {

/// A row of `in` ([rows, n]) sorted into `values` ([rows, k]) and the places they had, `indices` (UNSIGNED_INT [rows, k]).
void sortRows(Graph &graph, const Tensor &in, const Tensor &values, const Tensor &indices, bool descending, poplar::program::Sequence &prog,
              const std::string &name);
/// out[r][i] = in[r][places[r][i]], with the rows over the tiles.
Tensor permuteRows(Graph &graph, const Tensor &in, const Tensor &places, poplar::program::Sequence &prog, const std::string &name);
/// [rows, k] with the rows over the tiles.
Tensor rowsOverTiles(Graph &graph, const Type &type, std::size_t rows, std::size_t k, const std::string &name);

} // namespace poplibs
