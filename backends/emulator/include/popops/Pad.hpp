#ifndef SNNC_POPOPS_PAD_HPP
#define SNNC_POPOPS_PAD_HPP
#include <cstddef>
#include <vector>
#include <poplar/Graph.hpp>
namespace popops {
namespace padding {
/// Copies of the edge element, or elements from the edge on, mirrored.
enum class Type { EDGE, REFLECT };
/// Tiles of new constants: none, tile 0, or that of the edge element.
enum class MappingMethod { NONE, ZERO, EDGE };
} // namespace padding

/// A constant before and after the elements of each dimension.
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower,
                   const std::vector<std::ptrdiff_t> &upper, float value = 0.0f);
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension,
                   float value = 0.0f);
/// With the element of a tensor, on its own tile.
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower,
                   const std::vector<std::ptrdiff_t> &upper, const poplar::Tensor &value,
                   padding::MappingMethod method = padding::MappingMethod::ZERO);
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension,
                   const poplar::Tensor &value, padding::MappingMethod method = padding::MappingMethod::ZERO);
/// With constants on chosen tiles.
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower,
                   const std::vector<std::ptrdiff_t> &upper, float value, padding::MappingMethod method);
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, float value,
                   padding::MappingMethod method);
/// Views of the tensor's own elements; negative widths truncate.
poplar::Tensor pad(const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower, const std::vector<std::ptrdiff_t> &upper, padding::Type type);
poplar::Tensor pad(const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, padding::Type type);
} // namespace popops
#endif
