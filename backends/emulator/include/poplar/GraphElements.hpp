// Vertices, fields, compute sets and functions.
#ifndef SNNC_POPLAR_GRAPH_ELEMENTS_HPP
#define SNNC_POPLAR_GRAPH_ELEMENTS_HPP

#include <poplar/VertexRef.hpp>

#endif
