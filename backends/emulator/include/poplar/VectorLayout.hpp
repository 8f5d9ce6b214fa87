// Memory layouts of vectors in codelets.
#ifndef SNNC_POPLAR_VECTOR_LAYOUT_HPP
#define SNNC_POPLAR_VECTOR_LAYOUT_HPP
#include <poplar/InOutTypes.hpp>
#endif
