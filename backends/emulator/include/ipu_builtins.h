// Builtins that codelets use outside assembly.
#ifndef SNNC_IPU_BUILTINS_H
#define SNNC_IPU_BUILTINS_H
#include <poplar/VectorTypes.hpp>
#if !defined(__clang__)
#define __builtin_assume(condition) ((void)0)
#endif
#endif
