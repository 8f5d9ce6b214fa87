#ifndef SNNC_BARE_VERTEX_HPP
#define SNNC_BARE_VERTEX_HPP
#include <poplar/Vertex.hpp>
#endif
