// Graphs and programs as bytes, and back.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph_data.hpp"
#include "program_data.hpp"

namespace poplar::core {

std::string graphToBytes(GraphData &graph, ArrayRef<program::Program> programs);
/// Throws graph_object_load_error where the bytes hold no graph that could have been built.
std::shared_ptr<GraphData> graphFromBytes(const std::string &bytes, std::vector<program::Program> &programs);

std::string tensorsToBytes(const GraphData &graph, ArrayRef<Tensor> tensors);
/// The tensors as new variables of `graph`.
std::vector<Tensor> tensorsFromBytes(GraphData &graph, const std::string &bytes);

/// Throws graph_object_load_error where numbers of a graph that was read name what it does not have.
void requireConsistent(const GraphData &graph);
void requireVariables(const GraphData &graph);
void requireConsistent(const GraphData &graph, const program::Program &program, std::set<const ProgramData *> &seen);
/// The lowest and highest element of a view lie in its variable or list.
void requireInside(const GraphData &graph, const View &view);

} // namespace poplar::core
