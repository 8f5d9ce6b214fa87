// Sparse matrices on the device.
#ifndef SNNC_POPSPARSE_SPARSE_TENSOR_HPP
#define SNNC_POPSPARSE_SPARSE_TENSOR_HPP
#include <poplar/Tensor.hpp>
#include <poputil/TensorMetaData.hpp>
namespace popsparse {
namespace dynamic {
/// The positions of the blocks (UNSIGNED_SHORT), and their values; both are made by a Partitioner.
class SparseTensor {
public:
  SparseTensor() = default;
  SparseTensor(const poplar::Tensor &metaInfo, const poplar::Tensor &nzValues, const poputil::TensorMetaData &opMetaData = {})
      : metaInfo_(metaInfo), nzValues_(nzValues), opMetaData_(opMetaData) {}
  const poplar::Tensor &getMetaInfoTensor() const { return metaInfo_; }
  const poplar::Tensor &getNzValuesTensor() const { return nzValues_; }
  const poputil::TensorMetaData &getOpMetaData() const { return opMetaData_; }

private:
  poplar::Tensor metaInfo_, nzValues_;
  poputil::TensorMetaData opMetaData_;
};
} // namespace dynamic
namespace static_ {
/// The values of the blocks, in the order of a Partitioner; their positions are known when the graph is built.
class SparseTensor {
public:
  SparseTensor() = default;
  SparseTensor(const poplar::Tensor &nzValues, const poputil::TensorMetaData &opMetaData = {})
      : nzValues_(nzValues), opMetaData_(opMetaData) {}
  const poplar::Tensor &getNzValuesTensor() const { return nzValues_; }
  const poputil::TensorMetaData &getOpMetaData() const { return opMetaData_; }

private:
  poplar::Tensor nzValues_;
  poputil::TensorMetaData opMetaData_;
};
} // namespace static_
} // namespace popsparse
#endif
