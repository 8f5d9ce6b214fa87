// Positions of tensors' elements in variables, and orders of elements based on them.
#include <poplar/Graph.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <iostream>
#include <limits>
#include <numeric>

#include "graph_data.hpp"

namespace poplar {

using core::Index;

std::vector<VariableInterval> Tensor::getVarRegions() const {
  std::vector<VariableInterval> regions;
  const Tensor flat = flatten();
  for (const Interval &region : flat.getContiguousRegions()) {
    const core::Block first = core::blocksOf(flat.slice(region.begin(), region.begin() + 1).data().view).at(0);
    regions.push_back({VariableRef(first.var), Interval(std::size_t(first.start), std::size_t(first.start) + region.size())});
  }
  return regions;
}

bool Tensor::containsConstant() const {
  const core::GraphData &graph = *data().graph;
  const std::vector<core::Block> blocks = core::blocksOf(data().view);
  return std::any_of(blocks.begin(), blocks.end(), [&](const core::Block &b) { return graph.variables[b.var].constant; });
}

bool Tensor::hasMetadata() const {
  const std::vector<core::Block> blocks = core::blocksOf(data().view);
  return elementType().requiresMetadata() && !blocks.empty() && data().graph->variables[blocks[0].var].metadata;
}

Tensor Tensor::getMetadata() const {
  if (!hasMetadata())
    throw tensor_metadata_error("tensor '" + getName() + "' of type " + elementType().toString() +
                                " has no metadata: it was not made with them (Graph::addVariable, Graph::clone)");
  return Tensor(data().graph->variables[core::blocksOf(data().view)[0].var].metadata);
}

std::ostream &operator<<(std::ostream &os, const VariableInterval &interval) { return os << "variable " << interval.var.id() << interval.interval; }

void Tensor::output(std::ostream &os) const { os << getDebugStr() << "\n"; }
void Tensor::outputRegions(std::ostream &os) const {
  const core::GraphData &graph = *data().graph;
  for (const VariableInterval &region : getVarRegions())
    os << graph.elementName(region.var.id(), Index(region.interval.begin()), Index(region.interval.end())) << "\n";
}
void Tensor::dump() const { output(std::cerr); }
void Tensor::dumpRegions() const { outputRegions(std::cerr); }

namespace {

/// The elements of a flat tensor in another order, given as ranges.
Tensor reordered(const Tensor &flat, const std::vector<Interval> &order) { return order.empty() ? flat : concat(flat.slices(order)); }

} // namespace

void Graph::reorderToSimplify(Tensor *t, ArrayRef<Tensor *> ts, bool) const {
  for (const Tensor *other : ts)
    if (other->numElements() != t->numElements() || other->rank() != 1 || t->rank() != 1)
      throw poplar_error("reorderToSimplify: tensors of shapes " + t->shapeToString() + " and " + other->shapeToString() + " are not flat and equally long");
  std::vector<Interval> order;
  for (const std::vector<Interval> &part : getSortedContiguousRegions(*t, {Interval(0, t->numElements())}))
    order.insert(order.end(), part.begin(), part.end());
  for (Tensor *other : ts)
    *other = reordered(*other, order);
  *t = reordered(*t, order);
}

Tensor Graph::findUnbroadcastTensor(const Tensor &tensor) const {
  Tensor found = tensor;
  for (unsigned d = 0; d < tensor.rank(); ++d) {
    std::vector<Tensor> slices;
    for (std::size_t i = 0; i < found.dim(d); ++i)
      slices.push_back(found.slice(i, i + 1, d));
    // The shortest prefix whose repetition is the whole dimension.
    for (std::size_t period = 1; period < slices.size(); ++period)
      if (slices.size() % period == 0 && std::equal(slices.begin() + std::ptrdiff_t(period), slices.end(), slices.begin())) {
        found = found.slice(0, period, d);
        break;
      }
  }
  return found;
}

Type Graph::fieldType(const std::string &vertexName, const std::string &fieldName) const {
  const core::VertexType &type = data_->codelets.find(vertexName);
  return type.fields[type.fieldIndex(fieldName)].type;
}

std::size_t Graph::getMaxFieldDim(const std::string &vertexName, const std::string &fieldName, unsigned dimIndex) const {
  const core::VertexType &type = data_->codelets.find(vertexName);
  const core::FieldKind kind = type.fields[type.fieldIndex(fieldName)].kind;
  const unsigned rank = kind == core::FieldKind::List ? 2 : kind == core::FieldKind::Value || kind == core::FieldKind::Scalar ? 0 : 1;
  if (dimIndex >= rank)
    throw index_error("getMaxFieldDim: field '" + fieldName + "' of " + vertexName + " has " + std::to_string(rank) + " dimensions");
  // According to the documentation, the count of a SHORT_SPAN has 11 bits; other edges of the emulator have 32-bit counts.
  const bool isShort = type.fields[type.fieldIndex(fieldName)].layout == core::Layout::ShortSpan;
  return isShort ? 2047 : std::numeric_limits<std::uint32_t>::max();
}

unsigned Graph::convertPhysicalTileToVirtualTile(unsigned physicalTileId) const {
  const unsigned tiles = getTarget().getNumTiles();
  for (unsigned tile = 0; tile < tiles; ++tile)
    if (physicalTile(tile, "a conversion") == physicalTileId)
      return tile;
  throw index_error("tile " + std::to_string(physicalTileId) + " belongs to no tile of the graph");
}

} // namespace poplar
