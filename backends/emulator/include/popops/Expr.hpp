// Expressions over elements, for popops::map.
#ifndef SNNC_POPOPS_EXPR_HPP
#define SNNC_POPOPS_EXPR_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <poplar/Type.hpp>
#include <poplar/core/Language.hpp>
#include <popops/ExprOp.hpp>

namespace popops {
namespace expr {

/// Internal to the emulator: one operation of an expression.
struct Node {
  enum class Kind { Constant, PlaceHolder, Cast, Unary, Binary, Ternary };
  explicit Node(Kind what) : kind(what) {}
  Kind kind;
  /// The operation, or the number of a placeholder, from 1.
  int op = 0;
  poplar::Type type;
  /// A constant.
  bool isFloat = false;
  double real = 0;
  std::int64_t integer = 0;
  std::vector<std::shared_ptr<const Node>> operands;
};

/// An expression is a value; copies share their operations.
class Expr {
public:
  const std::shared_ptr<const Node> &node() const { return node_; }
  /// Whether another expression has the same operations and constants.
  bool deepEquals(const Expr &other) const;
  std::unique_ptr<Expr> clone() const { return std::unique_ptr<Expr>(new Expr(*this)); }
  std::string name() const;

protected:
  explicit Expr(Node node) : node_(std::make_shared<const Node>(std::move(node))) {}
  std::shared_ptr<const Node> node_;
};

/// Any expression.
class Any : public Expr {
public:
  Any(const Expr &expression) : Expr(expression) {}
};

class Const : public Expr {
public:
  template <class T, class = poplar::core::EnableIf<poplar::core::IsNumber<T>::value>> Const(T value) : Expr(make(value)) {}

protected:
  template <class T> static Node make(T value) {
    Node node(Node::Kind::Constant);
    node.type = poplar::equivalentDeviceType<T>();
    node.isFloat = !std::is_integral<T>::value;
    node.real = double(value);
    node.integer = integerOf(value, std::is_integral<T>());
    return node;
  }

private:
  template <class T> static std::int64_t integerOf(T value, std::true_type) { return std::int64_t(value); }
  template <class T> static std::int64_t integerOf(T, std::false_type) { return 0; }
};

/// A constant of type half.
class ConstHalf : public Const {
public:
  explicit ConstHalf(float value) : Const(poplar::IeeeHalf(value)) {}
};
inline ConstHalf operator""_half(long double value) { return ConstHalf(float(value)); }

/// The n-th tensor, from 1.
class PlaceHolder : public Expr {
public:
  explicit PlaceHolder(unsigned index) : Expr(make(index)) {}

private:
  static Node make(unsigned index) {
    Node node(Node::Kind::PlaceHolder);
    node.op = int(index);
    return node;
  }
};

// In C++11 each file has its own copy.
#if __cplusplus >= 201703L
#define SNNC_PLACE_HOLDER inline const PlaceHolder
#else
#define SNNC_PLACE_HOLDER const PlaceHolder
#endif
SNNC_PLACE_HOLDER _1(1), _2(2), _3(3), _4(4), _5(5), _6(6), _7(7), _8(8), _9(9), _10(10);
SNNC_PLACE_HOLDER _11(11), _12(12), _13(13), _14(14), _15(15), _16(16), _17(17), _18(18), _19(19), _20(20);
#undef SNNC_PLACE_HOLDER

class Cast : public Expr {
public:
  Cast(const Expr &a, poplar::Type type) : Expr(make(a, type)) {}

private:
  static Node make(const Expr &a, poplar::Type type) {
    Node node(Node::Kind::Cast);
    node.type = type;
    node.operands = {a.node()};
    return node;
  }
};

/// An operand of an operator: an expression, or a number.
class Operand : public Expr {
public:
  Operand(const Expr &expression) : Expr(expression) {}
  template <class T, class = poplar::core::EnableIf<poplar::core::IsNumber<T>::value>> Operand(T value) : Expr(Const(value)) {}
};

class UnaryOp : public Expr {
public:
  UnaryOp(UnaryOpType type, const Expr &a) : Expr(make(type, a)) {}

private:
  static Node make(UnaryOpType type, const Expr &a) {
    Node node(Node::Kind::Unary);
    node.op = int(type);
    node.operands = {a.node()};
    return node;
  }
};

class BinaryOp : public Expr {
public:
  BinaryOp(BinaryOpType type, const Expr &a, const Expr &b) : Expr(make(type, a, b)) {}

private:
  static Node make(BinaryOpType type, const Expr &a, const Expr &b) {
    Node node(Node::Kind::Binary);
    node.op = int(type);
    node.operands = {a.node(), b.node()};
    return node;
  }
};

class TernaryOp : public Expr {
public:
  TernaryOp(TernaryOpType type, const Expr &a, const Expr &b, const Expr &c) : Expr(make(type, a, b, c)) {}

private:
  static Node make(TernaryOpType type, const Expr &a, const Expr &b, const Expr &c) {
    Node node(Node::Kind::Ternary);
    node.op = int(type);
    node.operands = {a.node(), b.node(), c.node()};
    return node;
  }
};

#define SNNC_UNARY(Name, TYPE)                                                                                                   \
  class Name : public UnaryOp {                                                                                                  \
  public:                                                                                                                        \
    explicit Name(const Operand &a) : UnaryOp(UnaryOpType::TYPE, a) {}                                                           \
  };
SNNC_UNARY(Abs, ABSOLUTE)
SNNC_UNARY(Asin, ASIN)
SNNC_UNARY(BitwiseNot, BITWISE_NOT)
SNNC_UNARY(Cbrt, CBRT)
SNNC_UNARY(Ceil, CEIL)
SNNC_UNARY(Cos, COS)
SNNC_UNARY(Erf, ERF)
SNNC_UNARY(Exp, EXPONENT)
SNNC_UNARY(Exp2, EXPONENT2)
SNNC_UNARY(Expm1, EXPONENT_MINUS_ONE)
SNNC_UNARY(Floor, FLOOR)
SNNC_UNARY(GeluErf, GELU_ERF)
SNNC_UNARY(Inv, INVERSE)
SNNC_UNARY(IsFinite, IS_FINITE)
SNNC_UNARY(IsInf, IS_INF)
SNNC_UNARY(IsNaN, IS_NAN)
SNNC_UNARY(Log, LOGARITHM)
SNNC_UNARY(Log1p, LOGARITHM_ONE_PLUS)
SNNC_UNARY(NearbyInt, NEARBY_INT)
SNNC_UNARY(Neg, NEGATE)
SNNC_UNARY(Not, LOGICAL_NOT)
SNNC_UNARY(Relu, RELU)
SNNC_UNARY(Round, ROUND)
SNNC_UNARY(Rsqrt, RSQRT)
SNNC_UNARY(Sigmoid, SIGMOID)
SNNC_UNARY(Signum, SIGNUM)
SNNC_UNARY(Sin, SIN)
SNNC_UNARY(Sqrt, SQRT)
SNNC_UNARY(Square, SQUARE)
SNNC_UNARY(Tan, TAN)
SNNC_UNARY(Tanh, TANH)
SNNC_UNARY(Trunc, TRUNC)
#undef SNNC_UNARY

#define SNNC_BINARY(Name, TYPE)                                                                                                  \
  class Name : public BinaryOp {                                                                                                 \
  public:                                                                                                                        \
    Name(const Operand &a, const Operand &b) : BinaryOp(BinaryOpType::TYPE, a, b) {}                                             \
  };
SNNC_BINARY(Add, ADD)
SNNC_BINARY(And, LOGICAL_AND)
SNNC_BINARY(Atan2, ATAN2)
SNNC_BINARY(BitwiseAnd, BITWISE_AND)
SNNC_BINARY(BitwiseOr, BITWISE_OR)
SNNC_BINARY(BitwiseXnor, BITWISE_XNOR)
SNNC_BINARY(BitwiseXor, BITWISE_XOR)
SNNC_BINARY(Divide, DIVIDE)
SNNC_BINARY(Equal, EQUAL)
SNNC_BINARY(Gt, GREATER_THAN)
SNNC_BINARY(Gte, GREATER_THAN_EQUAL)
SNNC_BINARY(InvStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
SNNC_BINARY(Lt, LESS_THAN)
SNNC_BINARY(Lte, LESS_THAN_EQUAL)
SNNC_BINARY(Max, MAXIMUM)
SNNC_BINARY(Min, MINIMUM)
SNNC_BINARY(Mul, MULTIPLY)
SNNC_BINARY(NotEqual, NOT_EQUAL)
SNNC_BINARY(Or, LOGICAL_OR)
SNNC_BINARY(Pow, POWER)
SNNC_BINARY(Rem, REMAINDER)
SNNC_BINARY(Shl, SHIFT_LEFT)
SNNC_BINARY(Shr, SHIFT_RIGHT)
SNNC_BINARY(ShrSE, SHIFT_RIGHT_SIGN_EXTEND)
SNNC_BINARY(Sub, SUBTRACT)
SNNC_BINARY(VarianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
#undef SNNC_BINARY

#define SNNC_TERNARY(Name, TYPE)                                                                                                 \
  class Name : public TernaryOp {                                                                                                \
  public:                                                                                                                        \
    Name(const Operand &a, const Operand &b, const Operand &c) : TernaryOp(TernaryOpType::TYPE, a, b, c) {}                      \
  };
SNNC_TERNARY(Clamp, CLAMP)
SNNC_TERNARY(Select, SELECT)
#undef SNNC_TERNARY

#define SNNC_OPERATOR(SYMBOL, Name)                                                                                              \
  inline Name operator SYMBOL(const Expr &a, const Expr &b) { return Name(a, b); }                                               \
  template <class T, class = poplar::core::EnableIf<std::is_arithmetic<T>::value>> Name operator SYMBOL(const Expr &a, T b) {               \
    return Name(a, b);                                                                                                           \
  }                                                                                                                              \
  template <class T, class = poplar::core::EnableIf<std::is_arithmetic<T>::value>> Name operator SYMBOL(T a, const Expr &b) {               \
    return Name(a, b);                                                                                                           \
  }
SNNC_OPERATOR(+, Add)
SNNC_OPERATOR(-, Sub)
SNNC_OPERATOR(*, Mul)
SNNC_OPERATOR(/, Divide)
SNNC_OPERATOR(%, Rem)
SNNC_OPERATOR(==, Equal)
SNNC_OPERATOR(!=, NotEqual)
SNNC_OPERATOR(<, Lt)
SNNC_OPERATOR(<=, Lte)
SNNC_OPERATOR(>, Gt)
SNNC_OPERATOR(>=, Gte)
SNNC_OPERATOR(&&, And)
SNNC_OPERATOR(||, Or)
SNNC_OPERATOR(&, BitwiseAnd)
SNNC_OPERATOR(|, BitwiseOr)
SNNC_OPERATOR(^, BitwiseXor)
SNNC_OPERATOR(<<, Shl)
SNNC_OPERATOR(>>, Shr)
#undef SNNC_OPERATOR

inline Neg operator-(const Expr &a) { return Neg(a); }
inline Not operator!(const Expr &a) { return Not(a); }
inline BitwiseNot operator~(const Expr &a) { return BitwiseNot(a); }

} // namespace expr
} // namespace popops

#endif
