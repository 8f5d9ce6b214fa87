// Read before every file of codelets.
#ifndef SNNC_POPLAR_CORE_CODELETS_HPP
#define SNNC_POPLAR_CORE_CODELETS_HPP

#include <cstdint>

// GNU's <cmath> of C++17 also declares special functions (Bessel, zeta, ...), in templates that take longer to read than all else that a
// codelet includes. The library of IPUs has none of them.
#ifdef _GLIBCXX_USE_STD_SPEC_FUNCS
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#define _GLIBCXX_USE_STD_SPEC_FUNCS 0
#endif

#endif
