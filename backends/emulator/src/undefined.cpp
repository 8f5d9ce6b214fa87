#include "undefined.hpp"

#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cstdlib>

#include "graph_data.hpp"
#include "superstep.hpp"

namespace poplar::core {

namespace {

template <class F> void forEachElement(const Block &b, F &&f) {
  for (Index i = 0; i < b.n1; ++i)
    for (Index j = 0; j < b.n0; ++j)
      f(b.start + i * b.s1 + j * b.s0);
}

std::vector<Block> blocksOfEdge(const GraphData &graph, const Edge &edge) {
  return {graph.blocks.begin() + edge.firstBlock, graph.blocks.begin() + edge.firstBlock + edge.numBlocks};
}

} // namespace

bool checksUndefined() {
  const char *text = std::getenv("SNNC_CHECK_UNDEFINED");
  return text && std::atoi(text) != 0;
}

UndefinedElements::UndefinedElements(const GraphData &graph) : graph_(graph), undefined_(graph.variables.size()) {}

void UndefinedElements::clear() {
  for (std::vector<bool> &elements : undefined_)
    elements.clear();
}

void UndefinedElements::mark(const std::vector<Block> &blocks, bool value) {
  for (const Block &block : blocks) {
    std::vector<bool> &elements = undefined_[block.var];
    if (elements.empty() && !value)
      continue;
    elements.resize(std::size_t(graph_.variables[block.var].elements));
    forEachElement(block, [&](Index at) { elements[std::size_t(at)] = value; });
  }
}

Index UndefinedElements::firstIn(const Block &block) const {
  const std::vector<bool> &elements = undefined_[block.var];
  Index found = -1;
  if (!elements.empty())
    forEachElement(block, [&](Index at) { found = found < 0 && elements[std::size_t(at)] ? at : found; });
  return found;
}

void UndefinedElements::fail(std::uint32_t var, Index at, const std::string &user) const {
  throw application_runtime_error(user + " reads " + graph_.elementName(var, at, at + 1) + ", which nothing was written to since WriteUndef");
}

std::vector<bool> UndefinedElements::statesOf(const std::vector<Block> &blocks) const {
  std::vector<bool> states;
  for (const Block &block : blocks)
    forEachElement(block, [&](Index at) { states.push_back(!undefined_[block.var].empty() && undefined_[block.var][std::size_t(at)]); });
  if (std::find(states.begin(), states.end(), true) == states.end())
    states.clear();
  return states;
}

void UndefinedElements::setStates(const std::vector<Block> &blocks, const std::vector<bool> &states) {
  if (states.empty())
    return define(blocks);
  undefine(blocks);
  std::size_t i = 0;
  for (const Block &block : blocks)
    forEachElement(block, [&](Index at) { undefined_[block.var][std::size_t(at)] = states[i++]; });
}

void UndefinedElements::beforeStep(const Superstep &step) const {
  for (std::uint32_t v : graph_.computeSets[step.computeSet].vertices)
    for (const Edge &edge : graph_.vertices[v].edges) {
      const Field &field = graph_.vertices[v].type->fields[edge.field];
      if (field.direction != Direction::Output)
        require(blocksOfEdge(graph_, edge), [&] { return "field '" + field.name + "' of " + graph_.vertexName(v) + " in compute set '" + step.name + "'"; });
    }
}

void UndefinedElements::afterStep(const Superstep &step) {
  for (std::uint32_t v : graph_.computeSets[step.computeSet].vertices)
    for (const Edge &edge : graph_.vertices[v].edges)
      if (graph_.vertices[v].type->fields[edge.field].writes())
        define(blocksOfEdge(graph_, edge));
}

} // namespace poplar::core
