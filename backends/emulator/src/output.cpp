// Graphs as text for people.
#include <poplar/Graph.hpp>
#include <poplar/exceptions.hpp>

#include <ostream>
#include <set>

#include "graph_data.hpp"
#include "program_data.hpp"

namespace poplar {

void Graph::outputVertexGraph(std::ostream &os, ArrayRef<program::Program>) const {
  os << "digraph vertices {\n";
  for (std::size_t v = 0; v < data_->vertices.size(); ++v) {
    const core::VertexData &vertex = data_->vertices[v];
    os << "  v" << v << " [shape=box, label=\"" << vertex.type->name << "\"];\n";
    std::set<std::pair<std::uint32_t, bool>> seen;
    for (const core::Edge &edge : vertex.edges)
      for (std::uint32_t b = edge.firstBlock; b < edge.firstBlock + edge.numBlocks; ++b) {
        const bool writes = vertex.type->fields[edge.field].writes();
        const std::uint32_t var = data_->blocks[b].var;
        if (seen.insert({var, writes}).second)
          os << (writes ? "  v" + std::to_string(v) + " -> t" + std::to_string(var) : "  t" + std::to_string(var) + " -> v" + std::to_string(v))
             << ";\n";
      }
  }
  for (std::size_t t = 0; t < data_->variables.size(); ++t)
    os << "  t" << t << " [label=\"" << data_->variables[t].name << "\"];\n";
  os << "}\n";
}

namespace {

void outputProgram(std::ostream &os, const core::GraphData &graph, const program::Program &program, std::size_t &number) {
  const core::ProgramData &data = *program.data();
  const std::size_t own = number++;
  const std::string name = data.kind == core::ProgramKind::Execute ? graph.computeSets.at(data.number).name : data.name;
  os << "  p" << own << " [label=\"" << name << "\"];\n";
  for (const program::Program &child : data.children) {
    os << "  p" << own << " -> p" << number << ";\n";
    outputProgram(os, graph, child, number);
  }
}

} // namespace

namespace {

const char *kindName(core::ProgramKind kind) {
  constexpr const char *names[] = {"Sequence", "Execute", "Repeat", "RepeatWhileTrue", "RepeatWhileFalse", "If", "Switch", "Call", "Copy", "Copy", "Copy",
                                   "Copy", "Copy", "WriteUndef", "Sync", "PrintTensor", "Abort", "AbortOnCondition", "CrossReplicaCopy",
                                   "AssumeEqualAcrossReplicas", "ErrorProgram", "CycleStamp"};
  return names[int(kind)];
}

void dumpBelow(const core::GraphData &graph, const program::Program &program, std::ostream &out, unsigned depth) {
  const core::ProgramData &data = *program.data();
  const std::string name = data.kind == core::ProgramKind::Execute ? graph.computeSets.at(data.number).name : data.name;
  out << std::string(2 * depth, ' ') << kindName(data.kind) << (name.empty() ? "" : " " + name);
  if (data.kind == core::ProgramKind::Repeat)
    out << " x" << data.number;
  out << "\n";
  for (const program::Program &child : data.children)
    dumpBelow(graph, child, out, depth + 1);
}

} // namespace

void program::dumpProgram(const Graph &graph, const Program &program, std::ostream &out) { dumpBelow(graph.data(), program, out, 0); }
std::ostream &program::operator<<(std::ostream &os, const Program &program) {
  const core::ProgramData &data = *program.data();
  return os << kindName(data.kind) << (data.name.empty() ? "" : " " + data.name);
}

void Graph::outputComputationGraph(std::ostream &os, ArrayRef<program::Program> programs) const {
  os << "digraph program {\n";
  std::size_t number = 0;
  for (const program::Program &program : programs)
    outputProgram(os, *data_, program, number);
  os << "}\n";
}

} // namespace poplar
