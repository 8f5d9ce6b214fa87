#ifndef SNNC_POPLAR_IEEE_HALF_HPP
#define SNNC_POPLAR_IEEE_HALF_HPP
#include <poplar/HalfFloat.hpp>
#endif
