// Floating-point behaviour of the tiles. The emulator's is fixed: IEEE, round to nearest, no exceptions.
#ifndef SNNC_POPLAR_CSR_FUNCTIONS_HPP
#define SNNC_POPLAR_CSR_FUNCTIONS_HPP

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace poplar {

struct FloatingPointBehaviour {
  FloatingPointBehaviour(bool invalid = false, bool divideByZero = false, bool overflow = false, bool stochasticRounding = false,
                         bool nanOnOverflow = false)
      : exceptOnInv(invalid), exceptOnDiv0(divideByZero), exceptOnOflo(overflow), enableSr(stochasticRounding), nanoo(nanOnOverflow) {}
  bool exceptOnInv, exceptOnDiv0, exceptOnOflo, enableSr, nanoo;
};

inline void setFloatingPointBehaviour(Graph &, program::Sequence &, const FloatingPointBehaviour &, const DebugContext & = {}) {}
inline void setFloatingPointBehaviour(Graph &, program::Sequence &, const Tensor &, const DebugContext & = {}) {}
inline void setStochasticRounding(Graph &, program::Sequence &, bool, const DebugContext & = {}) {}

} // namespace poplar

#endif
