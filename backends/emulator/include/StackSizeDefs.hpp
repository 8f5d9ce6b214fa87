// Another path of poplar/StackSizeDefs.hpp, which programs also include.
#ifndef SNNC_STACK_SIZE_DEFS_HPP
#define SNNC_STACK_SIZE_DEFS_HPP
#include <poplar/StackSizeDefs.hpp>
#endif
