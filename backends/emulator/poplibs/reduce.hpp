// Reductions for use in other operations.
#pragma once

#include <popops/Reduce.hpp>

#include "builtin.hpp"

namespace poplibs {

/// Reduces the rows of `in` ([outputs, n]) to `out` ([outputs]); appends the required compute sets from `first` on.
void reduceRows(Graph &graph, const Tensor &in, const Tensor &out, const popops::ReduceParams &params,
                std::vector<poplar::ComputeSet> &computeSets, std::size_t first, const std::string &name);
/// `in` with the dimensions `dims` last and all others flattened: [outputs, n]. `shape` gets the shape of the others.
Tensor asRows(const Tensor &in, const std::vector<std::size_t> &dims, std::vector<std::size_t> &shape);

} // namespace poplibs
