#ifndef SNNC_POPLAR_TYPE_TRAITS_HPP
#define SNNC_POPLAR_TYPE_TRAITS_HPP
#include <poplar/Type.hpp>
#endif
