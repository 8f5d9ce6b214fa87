// Tensors for the results of element-wise operations.
#ifndef SNNC_POPOPS_ELEMENT_WISE_UTIL_HPP
#define SNNC_POPOPS_ELEMENT_WISE_UTIL_HPP
#include <poplar/Graph.hpp>
#include <vector>
namespace popops {
/// A tensor for the result of an element-wise operation on `inputs`, mapped like one of them.
poplar::Tensor createOutputForElementWiseOp(poplar::Graph &graph, const std::vector<poplar::Tensor> &inputs, const poplar::Type &outputType,
                                            const poplar::DebugContext &context = {});
} // namespace popops
#endif
