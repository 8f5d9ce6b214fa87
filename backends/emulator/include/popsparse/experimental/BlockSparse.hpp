// Softmax of block-sparse matrices.
#ifndef SNNC_POPSPARSE_EXPERIMENTAL_BLOCK_SPARSE_HPP
#define SNNC_POPSPARSE_EXPERIMENTAL_BLOCK_SPARSE_HPP
#include <array>
#include <vector>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popsparse {
namespace experimental {

/// Which elements of blocks are zero in addition: those above or below the diagonal of the matrix. Products accept only None.
enum class SubBlockMask { None, ZeroUpperTriangle, ZeroLowerTriangle };

/// The softmax of each row over the elements of its blocks; other elements are zero, and masked ones too.
///
/// sparseTensor: [blocks, elements of a block], the nonzero blocks row by row; sparsity: one number per block of the [dim 0, dim 1]
/// matrix. The mask applies to each of `numGroups` equal ranges of rows by itself.
poplar::Tensor bsSoftmax(poplar::Graph &graph, poplar::Tensor sparseTensor, const std::array<int, 2> &dim,
                         const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity, SubBlockMask subBlockMaskType,
                         unsigned numGroups, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
void bsSoftmaxInPlace(poplar::Graph &graph, poplar::Tensor sparseTensor, const std::array<int, 2> &dim,
                      const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity, SubBlockMask subBlockMaskType,
                      unsigned numGroups, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
/// The gradient of the softmax's input, for its result and the gradient of that.
poplar::Tensor bsSoftmaxGrad(poplar::Graph &graph, poplar::Tensor sparseOut, poplar::Tensor sparseOutGrad, const std::array<int, 2> &dim,
                             const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity,
                             poplar::program::Sequence &prog, const poplar::DebugContext &context = {});

} // namespace experimental
} // namespace popsparse
#endif
