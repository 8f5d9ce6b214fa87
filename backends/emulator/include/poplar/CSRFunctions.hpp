// Floating-point behaviour of the tiles. In the emulator it is fixed: IEEE, round to nearest, no exceptions.
#ifndef SNNC_POPLAR_CSR_FUNCTIONS_HPP
#define SNNC_POPLAR_CSR_FUNCTIONS_HPP

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace poplar {

struct FloatingPointBehaviour {
  FloatingPointBehaviour() = default;
  FloatingPointBehaviour(bool invalid, bool divideByZero, bool overflow, bool stochasticRounding, bool nanOnOverflow)
      : inv(invalid), div0(divideByZero), oflo(overflow), esr(stochasticRounding), nanoo(nanOnOverflow) {}
  FloatingPointBehaviour operator!() const { return {!inv, !div0, !oflo, !esr, !nanoo}; }
  bool inv = true, div0 = true, oflo = true, esr = true, nanoo = true;
};

inline void setFloatingPointBehaviour(Graph &, program::Sequence &, const FloatingPointBehaviour &, const DebugContext & = {}) {}
inline void setFloatingPointBehaviour(Graph &, program::Sequence &, const Tensor &, const DebugContext & = {}) {}
/// The state for setFloatingPointBehaviour.
inline Tensor getFloatingPointBehaviour(Graph &graph, program::Sequence &, const DebugContext &context = {}) {
  const Tensor state = graph.addConstant(UNSIGNED_INT, {1}, 0u, context);
  graph.setTileMapping(state, 0);
  return state;
}
inline Tensor getAndModifyFloatingPointBehaviour(Graph &graph, program::Sequence &prog, const FloatingPointBehaviour &,
                                                 const FloatingPointBehaviour &, const DebugContext &context = {}) {
  return getFloatingPointBehaviour(graph, prog, context);
}
inline void setStochasticRounding(Graph &, program::Sequence &, bool, const DebugContext & = {}) {}

} // namespace poplar

#endif
