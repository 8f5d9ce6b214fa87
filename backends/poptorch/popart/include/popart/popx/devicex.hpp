// Substitute for the device for which operations are lowered: a graph, and the tensors of one operation.
#ifndef SNNC_POPART_POPX_DEVICEX_HPP
#define SNNC_POPART_POPX_DEVICEX_HPP

#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>

#include <map>

namespace popart {
namespace popx {

class Devicex {
public:
  explicit Devicex(poplar::Graph &owned) : graph(owned) {}

  poplar::Graph &graph;
  std::map<int, poplar::Tensor> inputs, outputs;
};

} // namespace popx
} // namespace popart

#endif
