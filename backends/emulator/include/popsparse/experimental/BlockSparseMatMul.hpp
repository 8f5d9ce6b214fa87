// Products in which the right operand, or the result, is a list of blocks whose positions are known when the graph is built.
#ifndef SNNC_POPSPARSE_EXPERIMENTAL_BLOCK_SPARSE_MAT_MUL_HPP
#define SNNC_POPSPARSE_EXPERIMENTAL_BLOCK_SPARSE_MAT_MUL_HPP
#include <array>
#include <vector>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popsparse/experimental/BlockSparse.hpp>
namespace popsparse {
namespace experimental {

/// [dim 0, dim 1] times [dim 1, dim 2], in blocks; masks have one number per block, row by row, of all groups one after the other.
class BSMatMulParams {
public:
  /// Dense times sparse. With `rhsNeedTranspose`, mask and blocks are those of the [dim 2, dim 1] matrix that is transposed.
  BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize, const std::vector<unsigned char> &rhsSparsity,
                 bool rhsNeedTranspose, poplar::Type inDataType, poplar::Type outDataType, poplar::Type partialDataType,
                 unsigned numGroups = 1);
  /// Dense times dense; only some blocks of the result are computed.
  BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize, const std::vector<unsigned char> &resSparsity,
                 poplar::Type inDataType, poplar::Type outDataType, poplar::Type partialDataType,
                 SubBlockMask subBlockMask = SubBlockMask::None, unsigned numGroups = 1);

  std::array<std::size_t, 3> size, block;
  std::vector<unsigned char> mask;
  bool resultIsSparse, transposed;
  poplar::Type in, out;
  unsigned groups;
};

/// [groups x dim 0, dim 1]
poplar::Tensor createBSMatMulInputLHS(poplar::Graph &graph, const BSMatMulParams &params, const poplar::DebugContext &context = {},
                                      const poplar::OptionFlags &options = {});
/// [blocks, elements of a block], or [groups x dim 1, dim 2] for a dense matrix.
poplar::Tensor createBSMatMulInputRHS(poplar::Graph &graph, const BSMatMulParams &params, const poplar::DebugContext &context = {},
                                      const poplar::OptionFlags &options = {});
/// [groups x dim 0, dim 2], or [blocks, elements of a block].
poplar::Tensor bsMatMul(poplar::Graph &graph, const BSMatMulParams &params, poplar::program::Sequence &prog,
                        const poplar::Tensor &lhsMatrix, const poplar::Tensor &rhsMatrix, const poplar::OptionFlags &options = {},
                        const poplar::DebugContext &context = {});

} // namespace experimental
} // namespace popsparse
#endif
