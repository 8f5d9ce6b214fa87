// Evenly spaced numbers, and grids of coordinates.
#ifndef SNNC_POPLIN_MESH_GRID_HPP
#define SNNC_POPLIN_MESH_GRID_HPP

#include <vector>

#include <poplar/Graph.hpp>

namespace poplin {
/// A constant of `count` numbers from `left` to `right`, FLOAT or HALF.
poplar::Tensor linspace(poplar::Graph &graph, const poplar::Type &type, float left, float right, std::size_t count,
                        const poplar::DebugContext &context = {});
/// The x coordinates of the points of a grid, and the y coordinates: views of [y's size, x's size].
std::vector<poplar::Tensor> meshgrid2d(poplar::Graph &graph, poplar::Tensor x, poplar::Tensor y);
} // namespace poplin

#endif
