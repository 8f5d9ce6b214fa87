// Sparse matrices of the host in the device's format.
#ifndef SNNC_POPSPARSE_SPARSE_PARTITIONER_HPP
#define SNNC_POPSPARSE_SPARSE_PARTITIONER_HPP

#include <string>
#include <vector>

#include <poplar/OptionFlags.hpp>
#include <poplar/Target.hpp>
#include <poplar/Type.hpp>
#include <popsparse/FullyConnected.hpp>
#include <popsparse/MatMul.hpp>
#include <popsparse/MatMulParams.hpp>
#include <popsparse/SparseStorageFormats.hpp>
#include <popsparse/detail/Blocks.hpp>

namespace popsparse {
namespace dynamic {

/// Contents of the two tensors of a SparseTensor: pairs of block indices, and values; unused entries are marked and zero.
template <class T> struct SparsityDataImpl {
  std::vector<std::size_t> metaInfo;
  std::vector<T> nzValues;
};

template <class T> class Partitioner {
public:
  Partitioner(const FullyConnectedParams &params, const poplar::Type &, const poplar::Target &, const poplar::OptionFlags &,
              PlanningCache * = {}, std::string = "")
      : Partitioner({params.getOutputChannelsPerGroup(), params.getInputChannelsPerGroup()}, params.getNumGroups(),
                    params.getSparsityParams().blockDimensions, params.getNumNonZeroValues()) {}
  Partitioner(const MatMulParams &params, const poplar::Type &, const poplar::Target &, const poplar::OptionFlags &, PlanningCache * = {},
              std::string = "")
      : Partitioner({params.getM(), params.getK()}, params.getNumGroups(), params.getSparsityParams().blockDimensions,
                    params.getNumNonZeroValues()) {}

  SparsityDataImpl<T> createSparsityDataImpl(const CSCMatrix<T> &matrix) const { return made(matrix); }
  SparsityDataImpl<T> createSparsityDataImpl(const CSRMatrix<T> &matrix) const { return made(matrix); }
  SparsityDataImpl<T> createSparsityDataImpl(const COOMatrix<T> &matrix) const { return made(matrix); }

  /// The nonzero blocks, row by row.
  COOMatrix<T> sparsityDataImplToCOOMatrix(const SparsityDataImpl<T> &data) const {
    std::vector<detail::Shape> at;
    for (std::size_t i = 0; i + 1 < data.metaInfo.size() && data.metaInfo[i] != unused; i += 2)
      at.push_back({data.metaInfo[i] * block_[0], data.metaInfo[i + 1] * block_[1]});
    return detail::asCOO(at, data.nzValues, size_, block_);
  }
  CSRMatrix<T> sparsityDataImplToCSRMatrix(const SparsityDataImpl<T> &data) const {
    return detail::asCSR(sparsityDataImplToCOOMatrix(data));
  }
  CSCMatrix<T> sparsityDataImplToCSCMatrix(const SparsityDataImpl<T> &data) const {
    return detail::asCSC(sparsityDataImplToCOOMatrix(data));
  }

  /// Index that marks unused entries.
  static constexpr std::size_t unused = 0xffff;

private:
  Partitioner(detail::Shape size, std::size_t groups, detail::Shape block, std::size_t capacity)
      : size_(size), block_(block), capacity_(capacity) {
    if (groups != 1)
      detail::refuse(std::to_string(groups) + " groups; the emulator takes one");
  }
  template <class Matrix> SparsityDataImpl<T> made(const Matrix &matrix) const {
    const std::size_t blockSize = block_[0] * block_[1];
    const detail::Blocks blocks = detail::blocksOf(matrix, size_, block_);
    if (blocks.at.size() * blockSize > capacity_)
      detail::refuse(std::to_string(blocks.at.size() * blockSize) + " values where the parameters have room for " +
                     std::to_string(capacity_));
    SparsityDataImpl<T> data;
    for (const detail::Shape &at : blocks.at) {
      data.metaInfo.push_back(at[0] / block_[0]);
      data.metaInfo.push_back(at[1] / block_[1]);
    }
    data.nzValues = detail::valuesOf(blocks, matrix.nzValues, blockSize);
    data.metaInfo.resize(capacity_ / blockSize * 2, unused);
    data.nzValues.resize(capacity_);
    return data;
  }
  detail::Shape size_, block_;
  std::size_t capacity_;
};

} // namespace dynamic

namespace static_ {

/// The values in the order of the device, which is row by row.
template <class T> struct SparsityDataImpl {
  std::vector<T> nzValues;
  explicit SparsityDataImpl(std::vector<T> values) : nzValues(std::move(values)) {}
};

template <class T> class Partitioner {
public:
  Partitioner(const MatMulParams &params, const poplar::Type &, const poplar::Target &, const poplar::OptionFlags &, PlanningCache * = {},
              std::string = "")
      : size_(params.isTransposed() ? Shape{params.getK(), params.getM()} : Shape{params.getM(), params.getK()}) {}
  SparsityDataImpl<T> createSparsityDataImpl(const CSCMatrix<T> &matrix) const { return made(matrix); }
  SparsityDataImpl<T> createSparsityDataImpl(const CSRMatrix<T> &matrix) const { return made(matrix); }
  SparsityDataImpl<T> createSparsityDataImpl(const COOMatrix<T> &matrix) const { return made(matrix); }

private:
  using Shape = popsparse::detail::Shape;
  template <class Matrix> SparsityDataImpl<T> made(const Matrix &matrix) const {
    return SparsityDataImpl<T>(popsparse::detail::valuesOf(popsparse::detail::blocksOf(matrix, size_, matrix.getBlockDimensions()),
                                                           matrix.nzValues, matrix.getBlockSize()));
  }
  Shape size_;
};

} // namespace static_
} // namespace popsparse

#endif
