// One-hot vectors and ascending numbers.
#ifndef SNNC_POPOPS_ENCODING_HPP
#define SNNC_POPOPS_ENCODING_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// encoded[i, j] = indices[i] == j
void encodeOneHot(poplar::Graph &graph, const poplar::Tensor &indices, const poplar::Tensor &encoded, poplar::program::Sequence &prog,
                  const poplar::DebugContext &context = {});
/// As above, with given values for equal and for unequal.
void encodeOneHot(poplar::Graph &graph, const poplar::Tensor &indices, const poplar::Tensor &encoded, poplar::program::Sequence &prog,
                  const poplar::Tensor &on, const poplar::Tensor &off, const poplar::DebugContext &context = {});
/// t[i] = start + i
void iota(poplar::Graph &graph, const poplar::Tensor &t, unsigned start, poplar::program::Sequence &prog,
          const poplar::DebugContext &context = {});
void iota(poplar::Graph &graph, const poplar::Tensor &t, int start, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
} // namespace popops
#endif
