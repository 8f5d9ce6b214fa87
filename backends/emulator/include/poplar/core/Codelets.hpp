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

// popc defines this for codelets that define constants of these names.
#ifdef SNNC_OWN_MATH_CONSTANTS
#include <cmath>
#undef M_E
#undef M_LOG2E
#undef M_LOG10E
#undef M_LN2
#undef M_LN10
#undef M_PI
#undef M_PI_2
#undef M_PI_4
#undef M_1_PI
#undef M_2_PI
#undef M_2_SQRTPI
#undef M_SQRT2
#undef M_SQRT1_2
#endif

#endif
