#ifndef SNNC_POPUTIL_VAR_STRUCTURE_HPP
#define SNNC_POPUTIL_VAR_STRUCTURE_HPP
#include <poplar/Graph.hpp>
#include <poputil/TileMapping.hpp>
#endif
