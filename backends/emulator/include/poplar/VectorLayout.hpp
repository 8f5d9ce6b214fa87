// How vectors of codelets are laid out.
#ifndef SNNC_POPLAR_VECTOR_LAYOUT_HPP
#define SNNC_POPLAR_VECTOR_LAYOUT_HPP
#include <poplar/InOutTypes.hpp>
#endif
