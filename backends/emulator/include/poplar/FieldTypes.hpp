// Another path of poplar/InOutTypes.hpp, which programs also include.
#ifndef SNNC_POPLAR_FIELD_TYPES_HPP
#define SNNC_POPLAR_FIELD_TYPES_HPP
#include <poplar/InOutTypes.hpp>
#endif
