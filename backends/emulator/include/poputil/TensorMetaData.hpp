// Data that an operation attaches to a tensor that it made.
#ifndef SNNC_POPUTIL_TENSOR_META_DATA_HPP
#define SNNC_POPUTIL_TENSOR_META_DATA_HPP
#include <memory>
namespace poputil {
class TensorMetaDataBase {
public:
  virtual ~TensorMetaDataBase() = default;
};
class TensorMetaData {
public:
  TensorMetaData() = default;
  TensorMetaData(std::shared_ptr<const TensorMetaDataBase> data) : data_(std::move(data)) {}
  const TensorMetaDataBase *getData() const { return data_.get(); }

private:
  std::shared_ptr<const TensorMetaDataBase> data_;
};
} // namespace poputil
#endif
