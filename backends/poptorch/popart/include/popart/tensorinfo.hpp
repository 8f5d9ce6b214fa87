// Substitute for PopART's TensorInfo: an element type and a shape.
#ifndef SNNC_POPART_TENSORINFO_HPP
#define SNNC_POPART_TENSORINFO_HPP

#include <popart/datatype.hpp>
#include <popart/names.hpp>

#include <utility>

namespace popart {

class TensorInfo {
public:
  TensorInfo() = default;
  TensorInfo(DataType of, const Shape &sizes) : type(of), dims(sizes) {}

  const Shape &shape() const { return dims; }
  DataType dataType() const { return type; }
  int rank() const { return static_cast<int>(dims.size()); }
  std::int64_t nelms() const {
    std::int64_t n = 1;
    for (std::int64_t d : dims)
      n *= d;
    return n;
  }
  std::vector<std::size_t> shape_szt() const { return std::vector<std::size_t>(dims.begin(), dims.end()); }

private:
  DataType type = DataType::UNDEFINED;
  Shape dims;
};

} // namespace popart

#endif
