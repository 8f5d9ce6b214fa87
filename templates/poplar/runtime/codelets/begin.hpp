#include <ipudef.h>
#include <poplar/Vertex.hpp>

#include <cmath>

#ifndef SNNC_COUNT_CYCLES
#define SNNC_COUNT_CYCLES(n) static_cast<void>(sizeof(n))
#endif

using poplar::InOut;
using poplar::Input;
using poplar::Output;
using poplar::Vector;
using poplar::VectorLayout;
