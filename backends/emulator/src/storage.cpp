#include "storage.hpp"

#include <cstring>

#include "graph_data.hpp"

namespace poplar::core {

Storage::Storage(const GraphData &graph) {
  arrays_.reserve(graph.variables.size());
  for (const Variable &v : graph.variables) {
    arrays_.emplace_back(std::size_t(v.elements) * v.type.size());
    bases_.push_back(arrays_.back().data());
  }
}

void Storage::initialise(const GraphData &graph) {
  for (std::size_t i = 0; i < graph.variables.size(); ++i)
    if (graph.variables[i].constant && !graph.variables[i].value.empty())
      std::memcpy(bases_[i], graph.variables[i].value.data(), graph.variables[i].value.size());
  for (const TensorValue &t : graph.tensorValues) {
    const std::size_t bytes = t.tensor.type.size();
    std::size_t at = 0;
    for (const Block &b : blocksOf(t.tensor.view))
      for (Index i = 0; i < b.n1; ++i)
        for (Index j = 0; j < b.n0; ++j, ++at)
          writeValue(bases_[b.var] + (b.start + i * b.s1 + j * b.s0) * Index(bytes), t.tensor.type,
                     t.values[t.values.size() == 1 ? 0 : at]);
  }
}

} // namespace poplar::core
