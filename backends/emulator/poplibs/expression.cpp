// Types of expressions, their instructions and their cycles.
#include <cstdio>

#include <poputil/exceptions.hpp>

#include "evaluate.hpp"

namespace poplibs {

using popops::expr::BinaryOpType;
using popops::expr::Node;
using popops::expr::TernaryOpType;
using popops::expr::UnaryOpType;
using NodePointer = std::shared_ptr<const Node>;

namespace {

constexpr Type unknown{};

Instruction made(Node::Kind kind, int op, Type from, Type type) {
  Instruction in;
  in.kind = kind;
  in.op = op;
  in.from = from;
  in.type = type;
  return in;
}

class Compiler {
public:
  Compiler(ElementProgram &program) : program_(program) {}

  /// The register of a node; `wanted` is the type for a constant.
  std::uint16_t compile(const Node &node, Type wanted) {
    switch (node.kind) {
    case Node::Kind::PlaceHolder:
      return input(node);
    case Node::Kind::Constant:
      return constant(node, wanted);
    case Node::Kind::Cast:
      return cast(node);
    case Node::Kind::Unary:
      return unary(node, wanted);
    case Node::Kind::Binary:
      return binary(node, wanted);
    case Node::Kind::Ternary:
      break;
    }
    return ternary(node, wanted);
  }

  Type typeOf(std::uint16_t number) const { return types_[number]; }

  /// The type of a node, from its placeholders; unknown for a tree of constants.
  Type derive(const Node &node) const {
    switch (node.kind) {
    case Node::Kind::PlaceHolder:
      return inputType(node);
    case Node::Kind::Constant:
      return unknown;
    case Node::Kind::Cast:
      return node.type;
    case Node::Kind::Unary:
      return isTest(UnaryOpType(node.op)) ? poplar::BOOL : derive(*node.operands[0]);
    case Node::Kind::Binary:
      return isTest(BinaryOpType(node.op)) ? poplar::BOOL : common(node, 2);
    case Node::Kind::Ternary:
      break;
    }
    return common(node, TernaryOpType(node.op) == TernaryOpType::SELECT ? 2 : 3);
  }

private:
  static bool isTest(UnaryOpType op) {
    return op == UnaryOpType::IS_FINITE || op == UnaryOpType::IS_INF || op == UnaryOpType::IS_NAN || op == UnaryOpType::LOGICAL_NOT;
  }
  static bool isTest(BinaryOpType op) {
    switch (op) {
    case BinaryOpType::EQUAL:
    case BinaryOpType::NOT_EQUAL:
    case BinaryOpType::GREATER_THAN:
    case BinaryOpType::GREATER_THAN_EQUAL:
    case BinaryOpType::LESS_THAN:
    case BinaryOpType::LESS_THAN_EQUAL:
    case BinaryOpType::LOGICAL_AND:
    case BinaryOpType::LOGICAL_OR:
      return true;
    default:
      return false;
    }
  }

  Type common(const Node &node, std::size_t operands) const {
    Type found = unknown;
    for (std::size_t i = 0; i < operands; ++i) {
      const Type type = derive(*node.operands[i]);
      if (type == unknown)
        continue;
      if (found != unknown && found != type && !(isConvertible(node) && i > 0))
        throw poputil::poplibs_error("an operation of the expression meets types " + found.toString() + " and " + type.toString());
      if (found == unknown)
        found = type;
    }
    return found;
  }

  /// Whether an operation takes its second operand in float, whatever the type of the first.
  static bool isConvertible(const Node &node) {
    return node.kind == Node::Kind::Binary && (BinaryOpType(node.op) == BinaryOpType::VARIANCE_TO_INV_STD_DEV ||
                                               BinaryOpType(node.op) == BinaryOpType::INV_STD_DEV_TO_VARIANCE);
  }

  Type inputType(const Node &node) const {
    if (node.op < 1 || std::size_t(node.op) > program_.inputs.size())
      throw poputil::poplibs_error("the expression uses tensor _" + std::to_string(node.op) + " of " + std::to_string(program_.inputs.size()));
    return program_.inputs[std::size_t(node.op) - 1];
  }

  std::uint16_t add(Type type) {
    types_.push_back(type);
    program_.registers = std::uint16_t(types_.size());
    return std::uint16_t(types_.size() - 1);
  }

  std::uint16_t input(const Node &node) {
    const Type type = inputType(node);
    std::uint16_t &number = program_.inputRegisters[std::size_t(node.op) - 1];
    if (number == std::uint16_t(~0u))
      number = add(type);
    return number;
  }

  std::uint16_t constant(const Node &node, Type wanted) {
    Instruction in = made(Node::Kind::Constant, 0, node.type, wanted == unknown ? node.type : wanted);
    in.real = in.type == poplar::HALF ? float(half(float(node.isFloat ? node.real : double(node.integer))))
                                      : float(node.isFloat ? node.real : double(node.integer));
    in.integer = node.isFloat ? std::int64_t(node.real) : node.integer;
    if (in.type == poplar::BOOL)
      in.integer = node.isFloat ? node.real != 0 : node.integer != 0;
    return emit(in);
  }

  std::uint16_t emit(Instruction in) {
    in.to = add(in.type);
    program_.code.push_back(in);
    return in.to;
  }

  std::uint16_t cast(const Node &node) {
    const std::uint16_t a = compile(*node.operands[0], unknown);
    Instruction in = made(Node::Kind::Cast, 0, typeOf(a), node.type);
    in.a = a;
    return emit(in);
  }

  std::uint16_t unary(const Node &node, Type wanted) {
    const UnaryOpType op = UnaryOpType(node.op);
    const std::uint16_t a = compile(*node.operands[0], isTest(op) ? unknown : wanted);
    Instruction in = made(Node::Kind::Unary, node.op, typeOf(a), isTest(op) ? poplar::BOOL : typeOf(a));
    requireKind(op, typeOf(a));
    in.a = a;
    return emit(in);
  }

  static void requireKind(UnaryOpType op, Type type) {
    const bool bits = op == UnaryOpType::BITWISE_NOT || op == UnaryOpType::POPCOUNT || op == UnaryOpType::COUNT_LEADING_ZEROS;
    if (bits && isReal(type))
      throw poputil::poplibs_error("a bitwise operation on elements of type " + type.toString());
    if (op == UnaryOpType::LOGICAL_NOT && type != poplar::BOOL)
      throw poputil::poplibs_error("a logical operation on elements of type " + type.toString());
    const bool any = bits || isTest(op) || op == UnaryOpType::ABSOLUTE || op == UnaryOpType::NEGATE || op == UnaryOpType::RELU ||
                     op == UnaryOpType::SIGNUM || op == UnaryOpType::SQUARE || op == UnaryOpType::SQRT;
    if (!any && !isReal(type))
      throw poputil::poplibs_error("an operation on real numbers was given elements of type " + type.toString());
  }

  std::uint16_t binary(const Node &node, Type wanted) {
    const BinaryOpType op = BinaryOpType(node.op);
    Type type = common(node, 2);
    if (type == unknown)
      type = isTest(op) ? unknown : wanted;
    const std::uint16_t a = compile(*node.operands[0], type);
    const std::uint16_t b = compile(*node.operands[1], type == unknown ? typeOf(a) : type);
    Instruction in = made(Node::Kind::Binary, node.op, typeOf(a), isTest(op) ? poplar::BOOL : typeOf(a));
    requireKind(op, typeOf(a));
    in.a = a;
    in.b = b;
    return emit(in);
  }

  static void requireKind(BinaryOpType op, Type type) {
    const bool bits = op == BinaryOpType::BITWISE_AND || op == BinaryOpType::BITWISE_OR || op == BinaryOpType::BITWISE_XOR ||
                      op == BinaryOpType::BITWISE_XNOR || op == BinaryOpType::SHIFT_LEFT || op == BinaryOpType::SHIFT_RIGHT ||
                      op == BinaryOpType::SHIFT_RIGHT_SIGN_EXTEND;
    const bool reals = op == BinaryOpType::ATAN2 || op == BinaryOpType::INV_STD_DEV_TO_VARIANCE || op == BinaryOpType::VARIANCE_TO_INV_STD_DEV;
    const bool numbers = op == BinaryOpType::ADD || op == BinaryOpType::SUBTRACT || op == BinaryOpType::MULTIPLY ||
                         op == BinaryOpType::DIVIDE || op == BinaryOpType::REMAINDER || op == BinaryOpType::POWER;
    const bool logic = op == BinaryOpType::LOGICAL_AND || op == BinaryOpType::LOGICAL_OR;
    if ((bits && isReal(type)) || (reals && !isReal(type)) || (numbers && type == poplar::BOOL) || (logic && type != poplar::BOOL))
      throw poputil::poplibs_error("a binary operation was given elements of type " + type.toString());
  }

  std::uint16_t ternary(const Node &node, Type wanted) {
    const bool select = TernaryOpType(node.op) == TernaryOpType::SELECT;
    Type type = common(node, select ? 2 : 3);
    if (type == unknown)
      type = wanted;
    const std::uint16_t a = compile(*node.operands[0], type);
    const std::uint16_t b = compile(*node.operands[1], type == unknown ? typeOf(a) : type);
    const std::uint16_t c = compile(*node.operands[2], select ? poplar::BOOL : type == unknown ? typeOf(a) : type);
    if (select && typeOf(c) != poplar::BOOL)
      throw poputil::poplibs_error("select: the condition is of type " + typeOf(c).toString() + ", not bool");
    Instruction in = made(Node::Kind::Ternary, node.op, typeOf(a), typeOf(a));
    in.a = a;
    in.b = b;
    in.c = c;
    return emit(in);
  }

  ElementProgram &program_;
  std::vector<Type> types_;
};

/// A number as text; different numbers have different texts.
std::string exact(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

std::string textOf(const Node &node) {
  std::string text;
  switch (node.kind) {
  case Node::Kind::PlaceHolder:
    return "_" + std::to_string(node.op);
  case Node::Kind::Constant:
    return (node.isFloat ? exact(node.real) : std::to_string(node.integer)) + ":" + std::to_string(node.type.id());
  case Node::Kind::Cast:
    text = "c" + std::to_string(node.type.id());
    break;
  default:
    text = std::string(node.kind == Node::Kind::Unary ? "u" : node.kind == Node::Kind::Binary ? "b" : "t") + std::to_string(node.op);
  }
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    text += (i ? "," : "(") + textOf(*node.operands[i]);
  return text + ")";
}

/// Cycles of an inner loop, and the number of elements per iteration.
struct Loop {
  unsigned cycles, elements;
};

Loop unaryLoop(UnaryOpType op, Type type, unsigned width) {
  const bool isHalf = type == poplar::HALF;
  switch (op) {
  case UnaryOpType::EXPONENT:
  case UnaryOpType::EXPONENT2:
  case UnaryOpType::EXPONENT_MINUS_ONE:
  case UnaryOpType::LOGARITHM:
  case UnaryOpType::LOGARITHM_ONE_PLUS:
    return isHalf ? Loop{4, 4} : Loop{6, 2};
  case UnaryOpType::TANH:
    return isHalf ? Loop{4, 4} : Loop{12, 2};
  case UnaryOpType::SIGMOID:
    return isHalf ? Loop{6, 4} : Loop{12, 2};
  case UnaryOpType::SQRT:
  case UnaryOpType::RSQRT:
  case UnaryOpType::INVERSE:
    return {10, 2};
  case UnaryOpType::SIN:
  case UnaryOpType::COS:
  case UnaryOpType::TAN:
  case UnaryOpType::ASIN:
  case UnaryOpType::ERF:
  case UnaryOpType::CBRT:
  case UnaryOpType::GELU_ERF:
    return {150, 1};
  default:
    return isReal(type) ? Loop{3, width} : Loop{6, 1};
  }
}

Loop binaryLoop(BinaryOpType op, Type type, unsigned width) {
  if (!isReal(type))
    return op == BinaryOpType::DIVIDE || op == BinaryOpType::REMAINDER ? Loop{277, 1} : Loop{7, 1};
  switch (op) {
  case BinaryOpType::ADD:
  case BinaryOpType::SUBTRACT:
  case BinaryOpType::MULTIPLY:
  case BinaryOpType::MAXIMUM:
  case BinaryOpType::MINIMUM:
    return {3, width};
  case BinaryOpType::DIVIDE:
  case BinaryOpType::REMAINDER:
  case BinaryOpType::VARIANCE_TO_INV_STD_DEV:
  case BinaryOpType::INV_STD_DEV_TO_VARIANCE:
    return {10, 2};
  case BinaryOpType::POWER:
  case BinaryOpType::ATAN2:
    return {200, 1};
  default: // comparisons
    return {14, 4};
  }
}

Loop loopOf(const Instruction &in) {
  const unsigned width = in.from == poplar::HALF ? 4 : in.from == poplar::FLOAT ? 2 : 1;
  switch (in.kind) {
  case Node::Kind::Unary:
    return unaryLoop(UnaryOpType(in.op), in.from, width);
  case Node::Kind::Binary:
    return binaryLoop(BinaryOpType(in.op), in.from, width);
  case Node::Kind::Ternary:
    return {5, 1};
  case Node::Kind::Cast:
    return {3, width};
  default:
    return {2, width};
  }
}

} // namespace

ElementProgram compileExpression(const popops::expr::Expr &expression, const std::vector<Type> &inputs) {
  ElementProgram program;
  program.inputs = inputs;
  program.inputRegisters.assign(inputs.size(), std::uint16_t(~0u));
  Compiler compiler(program);
  program.result = compiler.compile(*expression.node(), compiler.derive(*expression.node()));
  program.output = compiler.typeOf(program.result);
  program.text = textOf(*expression.node());
  return program;
}

std::uint64_t elementCycles(const ElementProgram &program, std::size_t n, bool inPlace) {
  // The loads and the store of one vector, which every loop of the table contains.
  constexpr unsigned traffic = 2;
  const bool isHalf = program.inputs.empty() ? program.output == poplar::HALF : program.inputs[0] == poplar::HALF;
  std::uint64_t cycles = isHalf ? 26 : 29;
  std::size_t operations = 0;
  for (const Instruction &in : program.code) {
    if (in.kind == Node::Kind::Constant)
      continue;
    Loop loop = loopOf(in);
    const bool plain = loop.cycles == 3 && loop.elements > 1;
    loop.cycles -= operations++ > 0 ? traffic : (inPlace && plain && in.kind == Node::Kind::Binary) ? 1 : 0;
    cycles += (n + loop.elements - 1) / loop.elements * loop.cycles;
  }
  if (operations == 0)
    cycles += (n * program.output.size() + 7) / 8 * traffic;
  return cycles;
}

} // namespace poplibs

namespace popops::expr {
std::string Expr::name() const { return poplibs::textOf(*node_); }
} // namespace popops::expr
