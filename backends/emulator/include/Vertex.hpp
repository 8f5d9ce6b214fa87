// Another path of poplar/Vertex.hpp, which programs also include.
#ifndef SNNC_BARE_VERTEX_HPP
#define SNNC_BARE_VERTEX_HPP
#include <poplar/Vertex.hpp>
#endif
