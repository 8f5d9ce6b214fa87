// A ring buffer of the last tensors.
#ifndef SNNC_POPOPS_CIRC_BUF_HPP
#define SNNC_POPOPS_CIRC_BUF_HPP

#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

class CircBuf {
public:
  CircBuf(poplar::Graph &graph, const poplar::Type &dataType, unsigned size, const std::vector<std::size_t> &shape,
          const poplar::DebugContext &context = {});
  /// Returns the tensor that was added `i` calls before the last one.
  poplar::Tensor prev(unsigned i, poplar::program::Sequence &seq, const poplar::DebugContext &context = {});
  /// Replaces the oldest entry.
  void add(poplar::Tensor t, poplar::program::Sequence &seq, const poplar::DebugContext &context = {});
  /// Index of the last entry: 0 before anything is added.
  poplar::Tensor getIndex() const { return index_; }
  unsigned size() const { return size_; }
  poplar::Graph::TileToTensorMapping getTileMapping();

private:
  poplar::Graph &graph_;
  unsigned size_;
  poplar::Tensor index_, history_;
};

} // namespace popops

#endif
