// popops: names of operations as text, and comparison of expressions.
#include <popops/Expr.hpp>
#include <popops/ExprOpUtils.hpp>
#include <popops/OperationDefUtil.hpp>

#include <ostream>

namespace popops {
namespace expr {

namespace {

bool sameNodes(const Node &a, const Node &b) {
  if (a.kind != b.kind || a.op != b.op || a.type != b.type || a.isFloat != b.isFloat || a.real != b.real || a.integer != b.integer ||
      a.operands.size() != b.operands.size())
    return false;
  for (std::size_t i = 0; i < a.operands.size(); ++i)
    if (!sameNodes(*a.operands[i], *b.operands[i]))
      return false;
  return true;
}

} // namespace

bool Expr::deepEquals(const Expr &other) const { return sameNodes(*node(), *other.node()); }

namespace ostream_ext {

std::ostream &operator<<(std::ostream &stream, const UnaryOpType &op) {
  constexpr const char *names[] = {"ABSOLUTE", "ASIN", "BITWISE_NOT", "CBRT", "CEIL", "COS", "COUNT_LEADING_ZEROS", "ERF", "EXPONENT",
                                   "EXPONENT2", "EXPONENT_MINUS_ONE", "FLOOR", "GELU_ERF", "INVERSE", "IS_FINITE", "IS_INF", "IS_NAN",
                                   "LOGARITHM", "LOGARITHM_ONE_PLUS", "LOGICAL_NOT", "NEARBY_INT", "NEGATE", "POPCOUNT", "RELU", "ROUND",
                                   "RSQRT", "SIGMOID", "SIGNUM", "SIN", "SQRT", "SQUARE", "TAN", "TANH", "TRUNC"};
  static_assert(sizeof names / sizeof names[0] == std::size_t(UnaryOpType::TRUNC) + 1, "a name for each operation");
  return stream << names[int(op)];
}

std::ostream &operator<<(std::ostream &stream, const BinaryOpType &op) {
  constexpr const char *names[] = {"ADD", "ATAN2", "BITWISE_AND", "BITWISE_OR", "BITWISE_XNOR", "BITWISE_XOR", "DIVIDE", "EQUAL",
                                   "GREATER_THAN", "GREATER_THAN_EQUAL", "INV_STD_DEV_TO_VARIANCE", "LESS_THAN", "LESS_THAN_EQUAL",
                                   "LOGICAL_AND", "LOGICAL_OR", "MAXIMUM", "MINIMUM", "MULTIPLY", "NOT_EQUAL", "POWER", "REMAINDER",
                                   "SHIFT_LEFT", "SHIFT_RIGHT", "SHIFT_RIGHT_SIGN_EXTEND", "SUBTRACT", "VARIANCE_TO_INV_STD_DEV"};
  static_assert(sizeof names / sizeof names[0] == std::size_t(BinaryOpType::VARIANCE_TO_INV_STD_DEV) + 1, "a name for each operation");
  return stream << names[int(op)];
}

std::ostream &operator<<(std::ostream &stream, const TernaryOpType &op) { return stream << (op == TernaryOpType::CLAMP ? "CLAMP" : "SELECT"); }

} // namespace ostream_ext
} // namespace expr
} // namespace popops

namespace poputil {

const char *asString(const popops::Operation &op) {
  constexpr const char *names[] = {"Add", "Mul", "Min", "Max", "Logical And", "Logical Or", "Square Add", "Log Add"};
  return names[int(op)];
}

} // namespace poputil
