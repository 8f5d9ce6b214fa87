// The vertices of reductions: what one computes, its type and its cycles.
#pragma once

#include <string>
#include <vector>

#include <popops/Reduce.hpp>

#include "builtin.hpp"

namespace poplibs {

/// Data shared by the vertices of one tile: the number of elements of each output.
struct RowLengths {
  popops::Operation op;
  Type in, out;
  bool update, scaled;
  std::vector<std::uint32_t> ends;
};
template <class Archive> void describe(Archive &a, RowLengths &r) { a(r.op)(r.in)(r.out)(r.update)(r.scaled)(r.ends); }

const char *reductionName(popops::Operation op);
/// Name of the type; it is added to the graph if it is new.
std::string reductionType(Graph &graph, const RowLengths &rows);
/// Tile cycles: rows are distributed among the workers, a long row is split among them.
std::uint64_t reductionCycles(const Graph &graph, const RowLengths &rows);

} // namespace poplibs
