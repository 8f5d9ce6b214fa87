// Builtins under the short names in older codelets.
#ifndef SNNC_IPU_BUILTINS_H
#define SNNC_IPU_BUILTINS_H
#include <poplar/VectorTypes.hpp>
#include <poplar/Vertex.hpp>
inline unsigned get_tile_id() { return snnc_tile_id; }
inline unsigned get_scount_l() { return __builtin_ipu_get_scount_l(); }
inline unsigned get_scount_u() { return __builtin_ipu_get_scount_u(); }
inline unsigned urand32() { return snnc_random32(); }
#endif
