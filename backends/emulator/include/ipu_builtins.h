// Builtins that codelets use outside assembly.
#ifndef SNNC_IPU_BUILTINS_H
#define SNNC_IPU_BUILTINS_H
#include <poplar/VectorTypes.hpp>
#include <poplar/Vertex.hpp>
#if !defined(__clang__)
#define __builtin_assume(condition) ((void)0)
#endif
#define __builtin_ipu_get_tile_id() (snnc_tile_id)
#define __builtin_ipu_get_scount_l() (static_cast<unsigned>(snnc_worker_cycles))
#define __builtin_ipu_get_scount_u() (static_cast<unsigned>(snnc_worker_cycles >> 32))
#define __builtin_ipu_get(index) (snnc_worker_id)
#define __builtin_ipu_put(value, index) ((void)(value), (void)(index))
#define __builtin_ipu_uput(value, index) ((void)(value), (void)(index))
#define __builtin_ipu_urand32() (snnc_random32())
#define __builtin_ipu_urand_f32() (static_cast<float>(snnc_random32()) * 2.3283064365386963e-10f - 0.5f)
/// A generator of this thread's vertex: xorshift, seeded by the tile.
inline unsigned snnc_random32() {
  static thread_local unsigned state = 0;
  if (state == 0)
    state = 0x9e3779b9u ^ (snnc_tile_id * 2654435761u + 1);
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}
inline unsigned get_tile_id() { return snnc_tile_id; }
inline unsigned get_scount_l() { return static_cast<unsigned>(snnc_worker_cycles); }
inline unsigned get_scount_u() { return static_cast<unsigned>(snnc_worker_cycles >> 32); }
inline unsigned urand32() { return snnc_random32(); }
#endif
