// Vertices of popnn that programs add by name.
#pragma once

#include <poplar/Graph.hpp>

namespace poplibs {

void addClassPicks(poplar::Graph &graph);

} // namespace poplibs
