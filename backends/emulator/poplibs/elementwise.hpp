// Element-wise operations for use in other operations.
#pragma once

#include <vector>

#include <popops/ElementWise.hpp>

#include "builtin.hpp"

namespace poplibs {

/// Adds vertices that compute an expression for every element of `out` on its tile. Inputs have the shape of `out`, or one element.
void addElementWork(Graph &graph, poplar::ComputeSet computeSet, const popops::expr::Expr &expression, const std::vector<Tensor> &inputs,
                    const Tensor &out, const std::string &what);
/// A new tensor of `shape`, mapped like one of `inputs` with that shape, otherwise linearly.
Tensor outputLike(Graph &graph, Type type, const std::vector<std::size_t> &shape, const std::vector<Tensor> &inputs, const std::string &name);
/// The shape to which all tensors are broadcast, by NumPy's rule.
std::vector<std::size_t> broadcastShape(const std::vector<Tensor> &tensors);
Tensor broadcastTo(const Tensor &tensor, const std::vector<std::size_t> &shape);
/// A copy of `tensor` with the same mapping, made by `prog`.
Tensor duplicate(Graph &graph, const Tensor &tensor, poplar::program::Sequence &prog, const std::string &name);
/// mapWithOutput for the operations of any library.
void mapTo(Graph &graph, const popops::expr::Expr &expression, const std::vector<Tensor> &tensors, const Tensor &out,
           poplar::program::Sequence &prog, const std::string &name);

} // namespace poplibs
