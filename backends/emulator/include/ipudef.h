// Vector types in their usual header.
#ifndef SNNC_IPUDEF_H
#define SNNC_IPUDEF_H
#include <poplar/VectorTypes.hpp>
#endif
