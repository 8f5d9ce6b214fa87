// Element-wise operations over tensors.
#ifndef SNNC_POPOPS_ELEMENT_WISE_HPP
#define SNNC_POPOPS_ELEMENT_WISE_HPP

#include <type_traits>
#include <utility>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/core/Language.hpp>
#include <popops/Expr.hpp>

namespace popops {

using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;

/// The value of an expression for every element; `_1` is the first tensor. Shapes are broadcast as in NumPy.
Tensor map(Graph &graph, const expr::Expr &expression, const std::vector<Tensor> &tensors, Sequence &prog, const DebugContext &context = {},
           const OptionFlags &options = {});
/// The result is written to the first tensor.
void mapInPlace(Graph &graph, const expr::Expr &expression, const std::vector<Tensor> &tensors, Sequence &prog,
                const DebugContext &context = {}, const OptionFlags &options = {});
void mapWithOutput(Graph &graph, const expr::Expr &expression, const std::vector<Tensor> &tensors, const Tensor &out, Sequence &prog,
                   const DebugContext &context = {}, const OptionFlags &options = {});

inline Tensor map(Graph &graph, expr::UnaryOpType op, const Tensor &a, Sequence &prog, const DebugContext &context = {},
                  const OptionFlags &options = {}) {
  return map(graph, expr::UnaryOp(op, expr::_1), {a}, prog, context, options);
}
inline void mapInPlace(Graph &graph, expr::UnaryOpType op, const Tensor &a, Sequence &prog, const DebugContext &context = {},
                       const OptionFlags &options = {}) {
  mapInPlace(graph, expr::UnaryOp(op, expr::_1), {a}, prog, context, options);
}
inline void mapWithOutput(Graph &graph, expr::UnaryOpType op, const Tensor &a, const Tensor &out, Sequence &prog,
                          const DebugContext &context = {}, const OptionFlags &options = {}) {
  mapWithOutput(graph, expr::UnaryOp(op, expr::_1), {a}, out, prog, context, options);
}
inline Tensor map(Graph &graph, expr::BinaryOpType op, const Tensor &a, const Tensor &b, Sequence &prog, const DebugContext &context = {},
                  const OptionFlags &options = {}) {
  return map(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, prog, context, options);
}
inline void mapInPlace(Graph &graph, expr::BinaryOpType op, const Tensor &a, const Tensor &b, Sequence &prog,
                       const DebugContext &context = {}, const OptionFlags &options = {}) {
  mapInPlace(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, prog, context, options);
}
inline void mapWithOutput(Graph &graph, expr::BinaryOpType op, const Tensor &a, const Tensor &b, const Tensor &out, Sequence &prog,
                          const DebugContext &context = {}, const OptionFlags &options = {}) {
  mapWithOutput(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, out, prog, context, options);
}
inline Tensor map(Graph &graph, expr::TernaryOpType op, const Tensor &a, const Tensor &b, const Tensor &c, Sequence &prog,
                  const DebugContext &context = {}, const OptionFlags &options = {}) {
  return map(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, prog, context, options);
}
inline void mapInPlace(Graph &graph, expr::TernaryOpType op, const Tensor &a, const Tensor &b, const Tensor &c, Sequence &prog,
                       const DebugContext &context = {}, const OptionFlags &options = {}) {
  mapInPlace(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, prog, context, options);
}
inline void mapWithOutput(Graph &graph, expr::TernaryOpType op, const Tensor &a, const Tensor &b, const Tensor &c, const Tensor &out,
                          Sequence &prog, const DebugContext &context = {}, const OptionFlags &options = {}) {
  mapWithOutput(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, out, prog, context, options);
}

namespace detail {
template <class T> using IfNumber = poplar::core::EnableIf<poplar::core::IsNumber<T>::value>;
} // namespace detail

#define SNNC_POPOPS_UNARY(name, TYPE)                                                                                            \
  inline Tensor name(Graph &graph, const Tensor &a, Sequence &prog, const DebugContext &context = {},                            \
                     const OptionFlags &options = {}) {                                                                          \
    return map(graph, expr::UnaryOpType::TYPE, a, prog, context, options);                                                       \
  }                                                                                                                              \
  inline void name##InPlace(Graph &graph, const Tensor &a, Sequence &prog, const DebugContext &context = {},                     \
                            const OptionFlags &options = {}) {                                                                   \
    mapInPlace(graph, expr::UnaryOpType::TYPE, a, prog, context, options);                                                       \
  }                                                                                                                              \
  inline void name##WithOutput(Graph &graph, const Tensor &a, const Tensor &out, Sequence &prog,                                 \
                               const DebugContext &context = {}, const OptionFlags &options = {}) {                              \
    mapWithOutput(graph, expr::UnaryOpType::TYPE, a, out, prog, context, options);                                               \
  }
SNNC_POPOPS_UNARY(abs, ABSOLUTE)
SNNC_POPOPS_UNARY(asin, ASIN)
SNNC_POPOPS_UNARY(bitwiseNot, BITWISE_NOT)
SNNC_POPOPS_UNARY(cbrt, CBRT)
SNNC_POPOPS_UNARY(ceil, CEIL)
SNNC_POPOPS_UNARY(cos, COS)
SNNC_POPOPS_UNARY(countLeadingZeros, COUNT_LEADING_ZEROS)
SNNC_POPOPS_UNARY(erf, ERF)
SNNC_POPOPS_UNARY(exp, EXPONENT)
SNNC_POPOPS_UNARY(exp2, EXPONENT2)
SNNC_POPOPS_UNARY(expm1, EXPONENT_MINUS_ONE)
SNNC_POPOPS_UNARY(floor, FLOOR)
SNNC_POPOPS_UNARY(geluErf, GELU_ERF)
SNNC_POPOPS_UNARY(inv, INVERSE)
SNNC_POPOPS_UNARY(isFinite, IS_FINITE)
SNNC_POPOPS_UNARY(isInf, IS_INF)
SNNC_POPOPS_UNARY(isNaN, IS_NAN)
SNNC_POPOPS_UNARY(log, LOGARITHM)
SNNC_POPOPS_UNARY(log1p, LOGARITHM_ONE_PLUS)
SNNC_POPOPS_UNARY(logicalNot, LOGICAL_NOT)
SNNC_POPOPS_UNARY(nearbyInt, NEARBY_INT)
SNNC_POPOPS_UNARY(nearbyint, NEARBY_INT)
SNNC_POPOPS_UNARY(neg, NEGATE)
SNNC_POPOPS_UNARY(popcount, POPCOUNT)
SNNC_POPOPS_UNARY(relu, RELU)
SNNC_POPOPS_UNARY(round, ROUND)
SNNC_POPOPS_UNARY(rsqrt, RSQRT)
SNNC_POPOPS_UNARY(sigmoid, SIGMOID)
SNNC_POPOPS_UNARY(signum, SIGNUM)
SNNC_POPOPS_UNARY(sin, SIN)
SNNC_POPOPS_UNARY(sqrt, SQRT)
SNNC_POPOPS_UNARY(square, SQUARE)
SNNC_POPOPS_UNARY(tan, TAN)
SNNC_POPOPS_UNARY(tanh, TANH)
SNNC_POPOPS_UNARY(trunc, TRUNC)
#undef SNNC_POPOPS_UNARY

#define SNNC_POPOPS_BINARY(name, TYPE)                                                                                           \
  inline Tensor name(Graph &graph, const Tensor &a, const Tensor &b, Sequence &prog, const DebugContext &context = {},           \
                     const OptionFlags &options = {}) {                                                                          \
    return map(graph, expr::BinaryOpType::TYPE, a, b, prog, context, options);                                                   \
  }                                                                                                                              \
  template <class T, class = detail::IfNumber<T>>                                                                                \
  Tensor name(Graph &graph, const Tensor &a, T b, Sequence &prog, const DebugContext &context = {},                              \
              const OptionFlags &options = {}) {                                                                                 \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::_1, expr::Const(b)), {a}, prog, context, options);          \
  }                                                                                                                              \
  template <class T, class = detail::IfNumber<T>>                                                                                \
  Tensor name(Graph &graph, T a, const Tensor &b, Sequence &prog, const DebugContext &context = {},                              \
              const OptionFlags &options = {}) {                                                                                 \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::Const(a), expr::_1), {b}, prog, context, options);          \
  }                                                                                                                              \
  inline void name##InPlace(Graph &graph, const Tensor &a, const Tensor &b, Sequence &prog, const DebugContext &context = {},    \
                            const OptionFlags &options = {}) {                                                                   \
    mapInPlace(graph, expr::BinaryOpType::TYPE, a, b, prog, context, options);                                                   \
  }                                                                                                                              \
  template <class T, class = detail::IfNumber<T>>                                                                                \
  void name##InPlace(Graph &graph, const Tensor &a, T b, Sequence &prog, const DebugContext &context = {},                       \
                     const OptionFlags &options = {}) {                                                                          \
    mapInPlace(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::_1, expr::Const(b)), {a}, prog, context, options);          \
  }                                                                                                                              \
  inline void name##WithOutput(Graph &graph, const Tensor &a, const Tensor &b, const Tensor &out, Sequence &prog,                \
                               const DebugContext &context = {}, const OptionFlags &options = {}) {                              \
    mapWithOutput(graph, expr::BinaryOpType::TYPE, a, b, out, prog, context, options);                                           \
  }                                                                                                                              \
  template <class T, class = detail::IfNumber<T>>                                                                                \
  void name##WithOutput(Graph &graph, const Tensor &a, T b, const Tensor &out, Sequence &prog,                                   \
                        const DebugContext &context = {}, const OptionFlags &options = {}) {                                     \
    mapWithOutput(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::_1, expr::Const(b)), {a}, out, prog, context, options);  \
  }                                                                                                                              \
  template <class T, class = detail::IfNumber<T>>                                                                                \
  void name##WithOutput(Graph &graph, T a, const Tensor &b, const Tensor &out, Sequence &prog,                                   \
                        const DebugContext &context = {}, const OptionFlags &options = {}) {                                     \
    mapWithOutput(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::Const(a), expr::_1), {b}, out, prog, context, options);  \
  }
SNNC_POPOPS_BINARY(add, ADD)
SNNC_POPOPS_BINARY(atan2, ATAN2)
SNNC_POPOPS_BINARY(bitwiseAnd, BITWISE_AND)
SNNC_POPOPS_BINARY(bitwiseOr, BITWISE_OR)
SNNC_POPOPS_BINARY(bitwiseXnor, BITWISE_XNOR)
SNNC_POPOPS_BINARY(bitwiseXor, BITWISE_XOR)
SNNC_POPOPS_BINARY(div, DIVIDE)
SNNC_POPOPS_BINARY(eq, EQUAL)
SNNC_POPOPS_BINARY(gt, GREATER_THAN)
SNNC_POPOPS_BINARY(gteq, GREATER_THAN_EQUAL)
SNNC_POPOPS_BINARY(invStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
SNNC_POPOPS_BINARY(logicalAnd, LOGICAL_AND)
SNNC_POPOPS_BINARY(logicalOr, LOGICAL_OR)
SNNC_POPOPS_BINARY(lt, LESS_THAN)
SNNC_POPOPS_BINARY(lteq, LESS_THAN_EQUAL)
SNNC_POPOPS_BINARY(max, MAXIMUM)
SNNC_POPOPS_BINARY(min, MINIMUM)
SNNC_POPOPS_BINARY(mul, MULTIPLY)
SNNC_POPOPS_BINARY(neq, NOT_EQUAL)
SNNC_POPOPS_BINARY(pow, POWER)
SNNC_POPOPS_BINARY(rem, REMAINDER)
SNNC_POPOPS_BINARY(shiftLeft, SHIFT_LEFT)
SNNC_POPOPS_BINARY(shiftRight, SHIFT_RIGHT)
SNNC_POPOPS_BINARY(shiftRightSE, SHIFT_RIGHT_SIGN_EXTEND)
SNNC_POPOPS_BINARY(shiftRightSignExtend, SHIFT_RIGHT_SIGN_EXTEND)
SNNC_POPOPS_BINARY(sub, SUBTRACT)
SNNC_POPOPS_BINARY(varianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
#undef SNNC_POPOPS_BINARY

#define SNNC_POPOPS_TERNARY(name, TYPE)                                                                                          \
  inline Tensor name(Graph &graph, const Tensor &a, const Tensor &b, const Tensor &c, Sequence &prog,                            \
                     const DebugContext &context = {}, const OptionFlags &options = {}) {                                        \
    return map(graph, expr::TernaryOpType::TYPE, a, b, c, prog, context, options);                                               \
  }                                                                                                                              \
  template <class B, class C, class = detail::IfNumber<B>, class = detail::IfNumber<C>>                                          \
  Tensor name(Graph &graph, const Tensor &a, B b, C c, Sequence &prog, const DebugContext &context = {},                         \
              const OptionFlags &options = {}) {                                                                                 \
    return map(graph, expr::TernaryOp(expr::TernaryOpType::TYPE, expr::_1, expr::Const(b), expr::Const(c)), {a}, prog, context,  \
               options);                                                                                                         \
  }                                                                                                                              \
  inline void name##InPlace(Graph &graph, const Tensor &a, const Tensor &b, const Tensor &c, Sequence &prog,                     \
                            const DebugContext &context = {}, const OptionFlags &options = {}) {                                 \
    mapInPlace(graph, expr::TernaryOpType::TYPE, a, b, c, prog, context, options);                                               \
  }                                                                                                                              \
  template <class B, class C, class = detail::IfNumber<B>, class = detail::IfNumber<C>>                                          \
  void name##InPlace(Graph &graph, const Tensor &a, B b, C c, Sequence &prog, const DebugContext &context = {},                  \
                     const OptionFlags &options = {}) {                                                                          \
    mapInPlace(graph, expr::TernaryOp(expr::TernaryOpType::TYPE, expr::_1, expr::Const(b), expr::Const(c)), {a}, prog, context,  \
               options);                                                                                                         \
  }                                                                                                                              \
  inline void name##WithOutput(Graph &graph, const Tensor &a, const Tensor &b, const Tensor &c, const Tensor &out,               \
                               Sequence &prog, const DebugContext &context = {}, const OptionFlags &options = {}) {              \
    mapWithOutput(graph, expr::TernaryOpType::TYPE, a, b, c, out, prog, context, options);                                       \
  }
SNNC_POPOPS_TERNARY(clamp, CLAMP)
SNNC_POPOPS_TERNARY(select, SELECT)
#undef SNNC_POPOPS_TERNARY

/// select with one scalar and one tensor.
template <class T, class = detail::IfNumber<T>>
Tensor select(Graph &graph, const Tensor &a, T b, const Tensor &condition, Sequence &prog, const DebugContext &context = {},
              const OptionFlags &options = {}) {
  return map(graph, expr::Select(expr::_1, expr::Const(b), expr::_2), {a, condition}, prog, context, options);
}
template <class T, class = detail::IfNumber<T>>
Tensor select(Graph &graph, T a, const Tensor &b, const Tensor &condition, Sequence &prog, const DebugContext &context = {},
              const OptionFlags &options = {}) {
  return map(graph, expr::Select(expr::Const(a), expr::_1, expr::_2), {b, condition}, prog, context, options);
}

/// The values of several expressions of the same tensors.
std::vector<Tensor> map(Graph &graph, const std::vector<expr::Any> &expressions, const std::vector<Tensor> &tensors, Sequence &prog,
                        const DebugContext &context = {}, const OptionFlags &options = {});
/// Expression i is written to tensor i, after all are computed.
void mapInPlace(Graph &graph, const std::vector<expr::Any> &expressions, const std::vector<Tensor> &tensors, Sequence &prog,
                const DebugContext &context = {}, const OptionFlags &options = {});
void mapWithOutput(Graph &graph, const std::vector<expr::Any> &expressions, const std::vector<Tensor> &tensors,
                   const std::vector<Tensor> &outs, Sequence &prog, const DebugContext &context = {}, const OptionFlags &options = {});

/// Conversions between variances and inverse standard deviations, with results of type `dstType`.
Tensor varianceToInvStdDev(Graph &graph, const Tensor &src, const Tensor &epsilon, Sequence &prog, poplar::Type dstType,
                           const DebugContext &context = {});
Tensor varianceToInvStdDev(Graph &graph, const Tensor &src, float epsilon, Sequence &prog, poplar::Type dstType,
                           const DebugContext &context = {});
Tensor invStdDevToVariance(Graph &graph, const Tensor &src, const Tensor &epsilon, Sequence &prog, poplar::Type dstType,
                           const DebugContext &context = {});
Tensor invStdDevToVariance(Graph &graph, const Tensor &src, float epsilon, Sequence &prog, poplar::Type dstType,
                           const DebugContext &context = {});

} // namespace popops

#endif
