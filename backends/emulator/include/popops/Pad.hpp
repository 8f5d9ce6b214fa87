// Tensors that are padded or truncated.
#ifndef SNNC_POPOPS_PAD_HPP
#define SNNC_POPOPS_PAD_HPP
#include <cstddef>
#include <vector>
#include <poplar/Graph.hpp>
namespace popops {
namespace padding {
/// EDGE repeats the element at the edge; REFLECT mirrors the elements next to it.
enum class Type { EDGE, REFLECT };
/// Where new constants are stored: on no tile yet, on tile 0, or on the tile of the element at the edge.
enum class MappingMethod { NONE, ZERO, EDGE };
} // namespace padding

/// Adds a constant before and after the elements of each dimension; negative widths remove elements.
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower,
                   const std::vector<std::ptrdiff_t> &upper, float value = 0.0f);
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension,
                   float value = 0.0f);
/// As above, with copies of the one element of `value`, which stays on its tile.
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower,
                   const std::vector<std::ptrdiff_t> &upper, const poplar::Tensor &value,
                   padding::MappingMethod method = padding::MappingMethod::ZERO);
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension,
                   const poplar::Tensor &value, padding::MappingMethod method = padding::MappingMethod::ZERO);
/// As above, with constants on the tiles that `method` selects.
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower,
                   const std::vector<std::ptrdiff_t> &upper, float value, padding::MappingMethod method);
poplar::Tensor pad(poplar::Graph &graph, const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, float value,
                   padding::MappingMethod method);
/// As above, with views of the tensor's own elements.
poplar::Tensor pad(const poplar::Tensor &t, const std::vector<std::ptrdiff_t> &lower, const std::vector<std::ptrdiff_t> &upper, padding::Type type);
poplar::Tensor pad(const poplar::Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dimension, padding::Type type);
} // namespace popops
#endif
