// Base classes of codelets.
#ifndef SNNC_POPLAR_VERTEX_HPP
#define SNNC_POPLAR_VERTEX_HPP

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <poplar/Alignment.hpp>
#include <poplar/Builtins.hpp>
#include <poplar/HalfFloat.hpp>
#include <poplar/InOutTypes.hpp>
#include <poplar/QuarterFloat.hpp>

/// Emulator extension: a codelet reports actual trip counts, in worker cycles. On an IPU, define the macro as empty.
#define SNNC_COUNT_CYCLES(n) (snnc_worker_cycles += static_cast<unsigned long long>(n))

namespace poplar {

/// Run by one worker thread of a tile.
class Vertex {
public:
  static unsigned getWorkerIndex() { return snnc_worker_id; }
};

/// Run by all six worker threads of a tile, each with its own number.
class MultiVertex {
public:
  static constexpr unsigned numWorkers() { return 6; }
  static unsigned getWorkerIndex() { return snnc_worker_id; }
};

/// Run by the tile's supervisor; its cycles are tile cycles.
class SupervisorVertex {
public:
  static constexpr unsigned numWorkers() { return 6; }
  static unsigned getWorkerIndex() { return snnc_worker_id; }
};

template <bool Supervisor> using SupervisorVertexIf = std::conditional_t<Supervisor, SupervisorVertex, Vertex>;
template <bool Multi> using MultiVertexIf = std::conditional_t<Multi, MultiVertex, Vertex>;

} // namespace poplar

#endif
