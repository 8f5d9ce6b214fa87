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
/// Throws graph_object_load_error if the bytes do not represent a valid graph.
std::shared_ptr<GraphData> graphFromBytes(const std::string &bytes, std::vector<program::Program> &programs);

std::string tensorsToBytes(const GraphData &graph, ArrayRef<Tensor> tensors);
/// The tensors as new variables of `graph`.
std::vector<Tensor> tensorsFromBytes(GraphData &graph, const std::string &bytes);

/// Throws graph_object_load_error if numbers in a loaded graph refer to objects that do not exist.
void requireConsistent(const GraphData &graph);
void requireVariables(const GraphData &graph);
void requireConsistent(const GraphData &graph, const program::Program &program, std::set<const ProgramData *> &seen);
/// The lowest and highest element of a view are inside its variable or list.
void requireInside(const GraphData &graph, const View &view);

} // namespace poplar::core
