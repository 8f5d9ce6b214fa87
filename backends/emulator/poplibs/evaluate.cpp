#include "evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "../src/halves.hpp"

namespace poplibs {

using popops::expr::BinaryOpType;
using popops::expr::Node;
using popops::expr::TernaryOpType;
using popops::expr::UnaryOpType;

namespace {

constexpr std::size_t block = 128;

union Register {
  float real[block];
  std::int64_t integer[block];
};

/// Rounds to the precision of a type, once per block, because a single conversion costs more than most operations.
void roundTo(Type type, float *values, std::size_t n) {
  if (type == poplar::HALF)
    poplar::core::roundToHalf(values, n);
}

std::int64_t wrapped(Type type, std::int64_t x) {
  switch (type.id()) {
  case poplar::BOOL.id():
    return x != 0;
  case poplar::CHAR.id():
  case poplar::SIGNED_CHAR.id():
    return std::int8_t(x);
  case poplar::UNSIGNED_CHAR.id():
    return std::uint8_t(x);
  case poplar::SHORT.id():
    return std::int16_t(x);
  case poplar::UNSIGNED_SHORT.id():
    return std::uint16_t(x);
  case poplar::INT.id():
    return std::int32_t(x);
  case poplar::UNSIGNED_INT.id():
    return std::uint32_t(x);
  default:
    return x;
  }
}

template <class T, class To> void loadAs(To *to, const char *from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    to[i] = To(value);
  }
}

template <class T, class From> void storeAs(char *to, const From *from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const T value = T(from[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

void load(Register &to, Type type, const char *from, std::size_t n) {
  switch (type.id()) {
  case poplar::FLOAT.id():
    return loadAs<float>(to.real, from, n);
  case poplar::HALF.id():
    return poplar::core::widen(from, to.real, n);
  case poplar::BOOL.id():
  case poplar::UNSIGNED_CHAR.id():
    return loadAs<std::uint8_t>(to.integer, from, n);
  case poplar::CHAR.id():
  case poplar::SIGNED_CHAR.id():
    return loadAs<std::int8_t>(to.integer, from, n);
  case poplar::SHORT.id():
    return loadAs<std::int16_t>(to.integer, from, n);
  case poplar::UNSIGNED_SHORT.id():
    return loadAs<std::uint16_t>(to.integer, from, n);
  case poplar::INT.id():
    return loadAs<std::int32_t>(to.integer, from, n);
  case poplar::UNSIGNED_INT.id():
    return loadAs<std::uint32_t>(to.integer, from, n);
  default:
    return loadAs<std::int64_t>(to.integer, from, n);
  }
}

void store(char *to, Type type, const Register &from, std::size_t n) {
  if (type == poplar::FLOAT)
    storeAs<float>(to, from.real, n);
  else if (type == poplar::HALF)
    poplar::core::narrow(from.real, to, n);
  else if (type.size() == 1)
    storeAs<std::uint8_t>(to, from.integer, n);
  else if (type.size() == 2)
    storeAs<std::uint16_t>(to, from.integer, n);
  else if (type.size() == 4)
    storeAs<std::uint32_t>(to, from.integer, n);
  else
    storeAs<std::int64_t>(to, from.integer, n);
}

float unaryReal(UnaryOpType op, float x) {
  switch (op) {
  case UnaryOpType::ABSOLUTE:
    return std::fabs(x);
  case UnaryOpType::ASIN:
    return std::asin(x);
  case UnaryOpType::CBRT:
    return std::cbrt(x);
  case UnaryOpType::CEIL:
    return std::ceil(x);
  case UnaryOpType::COS:
    return std::cos(x);
  case UnaryOpType::ERF:
    return std::erf(x);
  case UnaryOpType::EXPONENT:
    return std::exp(x);
  case UnaryOpType::EXPONENT2:
    return std::exp2(x);
  case UnaryOpType::EXPONENT_MINUS_ONE:
    return std::expm1(x);
  case UnaryOpType::FLOOR:
    return std::floor(x);
  case UnaryOpType::GELU_ERF:
    return 0.5f * x * (1 + std::erf(x * 0.70710678f));
  case UnaryOpType::INVERSE:
    return 1 / x;
  case UnaryOpType::LOGARITHM:
    return std::log(x);
  case UnaryOpType::LOGARITHM_ONE_PLUS:
    return std::log1p(x);
  case UnaryOpType::NEARBY_INT:
    return std::nearbyint(x);
  case UnaryOpType::NEGATE:
    return -x;
  case UnaryOpType::RELU:
    return x > 0 ? x : 0 * x;
  case UnaryOpType::ROUND:
    return std::round(x);
  case UnaryOpType::RSQRT:
    return 1 / std::sqrt(x);
  case UnaryOpType::SIGMOID:
    return 1 / (1 + std::exp(-x));
  case UnaryOpType::SIGNUM:
    return float((x > 0) - (x < 0));
  case UnaryOpType::SIN:
    return std::sin(x);
  case UnaryOpType::SQRT:
    return std::sqrt(x);
  case UnaryOpType::SQUARE:
    return x * x;
  case UnaryOpType::TAN:
    return std::tan(x);
  case UnaryOpType::TANH:
    return std::tanh(x);
  case UnaryOpType::TRUNC:
    return std::trunc(x);
  default:
    return x;
  }
}

bool unaryTest(UnaryOpType op, float x) {
  return op == UnaryOpType::IS_FINITE ? std::isfinite(x) : op == UnaryOpType::IS_INF ? std::isinf(x) : op == UnaryOpType::IS_NAN ? std::isnan(x) : x == 0;
}

std::int64_t unaryInteger(UnaryOpType op, Type type, std::int64_t x) {
  const unsigned bits = unsigned(type.size()) * 8;
  const std::uint64_t raw = bits == 64 ? std::uint64_t(x) : std::uint64_t(x) & ((std::uint64_t(1) << bits) - 1);
  switch (op) {
  case UnaryOpType::ABSOLUTE:
    return x < 0 ? std::int64_t(-std::uint64_t(x)) : x;
  case UnaryOpType::BITWISE_NOT:
    return ~x;
  case UnaryOpType::COUNT_LEADING_ZEROS:
    return raw ? __builtin_clzll(raw) - (64 - int(bits)) : int(bits);
  case UnaryOpType::LOGICAL_NOT:
    return x == 0;
  case UnaryOpType::NEGATE:
    return std::int64_t(-std::uint64_t(x));
  case UnaryOpType::POPCOUNT:
    return __builtin_popcountll(raw);
  case UnaryOpType::RELU:
    return x > 0 ? x : 0;
  case UnaryOpType::SIGNUM:
    return (x > 0) - (x < 0);
  case UnaryOpType::SQUARE:
    return std::int64_t(std::uint64_t(x) * std::uint64_t(x));
  default:
    return x;
  }
}

float binaryReal(BinaryOpType op, float a, float b) {
  switch (op) {
  case BinaryOpType::ADD:
    return a + b;
  case BinaryOpType::ATAN2:
    return std::atan2(a, b);
  case BinaryOpType::DIVIDE:
    return a / b;
  case BinaryOpType::INV_STD_DEV_TO_VARIANCE:
    return 1 / (a * a) - b;
  case BinaryOpType::MAXIMUM:
    return std::fmax(a, b);
  case BinaryOpType::MINIMUM:
    return std::fmin(a, b);
  case BinaryOpType::MULTIPLY:
    return a * b;
  case BinaryOpType::POWER:
    return std::pow(a, b);
  case BinaryOpType::REMAINDER:
    return std::fmod(a, b);
  case BinaryOpType::SUBTRACT:
    return a - b;
  default: // VARIANCE_TO_INV_STD_DEV
    return 1 / std::sqrt(a + b);
  }
}

template <class T> bool binaryTest(BinaryOpType op, T a, T b) {
  switch (op) {
  case BinaryOpType::EQUAL:
    return a == b;
  case BinaryOpType::GREATER_THAN:
    return a > b;
  case BinaryOpType::GREATER_THAN_EQUAL:
    return a >= b;
  case BinaryOpType::LESS_THAN:
    return a < b;
  case BinaryOpType::LESS_THAN_EQUAL:
    return a <= b;
  case BinaryOpType::LOGICAL_AND:
    return a != 0 && b != 0;
  case BinaryOpType::LOGICAL_OR:
    return a != 0 || b != 0;
  default: // NOT_EQUAL
    return a != b;
  }
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::uint64_t result = 1, factor = std::uint64_t(base);
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  for (; exponent; exponent >>= 1, factor *= factor)
    result *= exponent & 1 ? factor : 1;
  return std::int64_t(result);
}

std::int64_t shiftRight(Type type, std::int64_t a, std::int64_t b) {
  const unsigned bits = unsigned(type.size()) * 8;
  const std::uint64_t raw = bits == 64 ? std::uint64_t(a) : std::uint64_t(a) & ((std::uint64_t(1) << bits) - 1);
  return std::uint64_t(b) >= bits ? 0 : std::int64_t(raw >> b);
}

std::int64_t binaryInteger(BinaryOpType op, Type type, std::int64_t a, std::int64_t b) {
  const bool isUnsigned64 = type == poplar::UNSIGNED_LONGLONG;
  switch (op) {
  case BinaryOpType::ADD:
    return std::int64_t(std::uint64_t(a) + std::uint64_t(b));
  case BinaryOpType::BITWISE_AND:
    return a & b;
  case BinaryOpType::BITWISE_OR:
    return a | b;
  case BinaryOpType::BITWISE_XNOR:
    return ~(a ^ b);
  case BinaryOpType::BITWISE_XOR:
    return a ^ b;
  case BinaryOpType::DIVIDE:
    return b == 0 ? 0 : isUnsigned64 ? std::int64_t(std::uint64_t(a) / std::uint64_t(b)) : b == -1 ? std::int64_t(-std::uint64_t(a)) : a / b;
  case BinaryOpType::MAXIMUM:
    return std::max(a, b);
  case BinaryOpType::MINIMUM:
    return std::min(a, b);
  case BinaryOpType::MULTIPLY:
    return std::int64_t(std::uint64_t(a) * std::uint64_t(b));
  case BinaryOpType::POWER:
    return power(a, b);
  case BinaryOpType::REMAINDER:
    return b == 0 || b == -1 ? 0 : isUnsigned64 ? std::int64_t(std::uint64_t(a) % std::uint64_t(b)) : a % b;
  case BinaryOpType::SHIFT_LEFT:
    return std::uint64_t(b) >= type.size() * 8 ? 0 : std::int64_t(std::uint64_t(a) << b);
  case BinaryOpType::SHIFT_RIGHT:
    return shiftRight(type, a, b);
  case BinaryOpType::SHIFT_RIGHT_SIGN_EXTEND:
    return std::uint64_t(b) >= 63 ? (a < 0 ? -1 : 0) : a >> b;
  default: // SUBTRACT
    return std::int64_t(std::uint64_t(a) - std::uint64_t(b));
  }
}

template <class F> void each(std::size_t n, F &&f) {
  for (std::size_t i = 0; i < n; ++i)
    f(i);
}

void castRegister(const Instruction &in, Register &to, const Register &from, std::size_t n) {
  if (isReal(in.from) && isReal(in.type)) {
    each(n, [&](std::size_t i) { to.real[i] = from.real[i]; });
    roundTo(in.type, to.real, n);
  } else if (isReal(in.from)) {
    each(n, [&](std::size_t i) {
      to.integer[i] = in.type == poplar::BOOL ? from.real[i] != 0 : wrapped(in.type, std::int64_t(from.real[i]));
    });
  } else if (isReal(in.type)) {
    each(n, [&](std::size_t i) {
      to.real[i] = in.from == poplar::UNSIGNED_LONGLONG ? float(std::uint64_t(from.integer[i])) : float(from.integer[i]);
    });
    roundTo(in.type, to.real, n);
  } else {
    each(n, [&](std::size_t i) { to.integer[i] = wrapped(in.type, from.integer[i]); });
  }
}

void unary(const Instruction &in, Register &to, const Register &a, std::size_t n) {
  const UnaryOpType op = UnaryOpType(in.op);
  if (isReal(in.type)) {
    each(n, [&](std::size_t i) { to.real[i] = unaryReal(op, a.real[i]); });
    roundTo(in.type, to.real, n);
  } else if (isReal(in.from))
    each(n, [&](std::size_t i) { to.integer[i] = unaryTest(op, a.real[i]); });
  else if (op == UnaryOpType::IS_FINITE)
    each(n, [&](std::size_t i) { to.integer[i] = 1; });
  else if (op == UnaryOpType::IS_INF || op == UnaryOpType::IS_NAN)
    each(n, [&](std::size_t i) { to.integer[i] = 0; });
  else
    each(n, [&](std::size_t i) { to.integer[i] = wrapped(in.type, unaryInteger(op, in.from, a.integer[i])); });
}

/// For common operations, the operation is selected once per block.
void binaryReals(const Instruction &in, float *to, const float *a, const float *b, std::size_t n) {
  switch (BinaryOpType(in.op)) {
  case BinaryOpType::ADD:
    each(n, [&](std::size_t i) { to[i] = a[i] + b[i]; });
    break;
  case BinaryOpType::SUBTRACT:
    each(n, [&](std::size_t i) { to[i] = a[i] - b[i]; });
    break;
  case BinaryOpType::MULTIPLY:
    each(n, [&](std::size_t i) { to[i] = a[i] * b[i]; });
    break;
  default:
    each(n, [&](std::size_t i) { to[i] = binaryReal(BinaryOpType(in.op), a[i], b[i]); });
  }
  roundTo(in.type, to, n);
}

bool isTest(BinaryOpType op) {
  return op == BinaryOpType::EQUAL || op == BinaryOpType::NOT_EQUAL || op == BinaryOpType::GREATER_THAN ||
         op == BinaryOpType::GREATER_THAN_EQUAL || op == BinaryOpType::LESS_THAN || op == BinaryOpType::LESS_THAN_EQUAL ||
         op == BinaryOpType::LOGICAL_AND || op == BinaryOpType::LOGICAL_OR;
}

void binary(const Instruction &in, Register &to, const Register &a, const Register &b, std::size_t n) {
  const BinaryOpType op = BinaryOpType(in.op);
  if (isTest(op) && isReal(in.from))
    each(n, [&](std::size_t i) { to.integer[i] = binaryTest(op, a.real[i], b.real[i]); });
  else if (isTest(op) && in.from == poplar::UNSIGNED_LONGLONG)
    each(n, [&](std::size_t i) { to.integer[i] = binaryTest(op, std::uint64_t(a.integer[i]), std::uint64_t(b.integer[i])); });
  else if (isTest(op))
    each(n, [&](std::size_t i) { to.integer[i] = binaryTest(op, a.integer[i], b.integer[i]); });
  else if (isReal(in.type))
    binaryReals(in, to.real, a.real, b.real, n);
  else
    each(n, [&](std::size_t i) { to.integer[i] = wrapped(in.type, binaryInteger(op, in.type, a.integer[i], b.integer[i])); });
}

void ternary(const Instruction &in, Register &to, const Register &a, const Register &b, const Register &c, std::size_t n) {
  const bool select = TernaryOpType(in.op) == TernaryOpType::SELECT;
  if (isReal(in.type))
    each(n, [&](std::size_t i) {
      to.real[i] = select ? (c.integer[i] ? a.real[i] : b.real[i]) : std::fmin(std::fmax(a.real[i], b.real[i]), c.real[i]);
    });
  else
    each(n, [&](std::size_t i) {
      to.integer[i] = select ? (c.integer[i] ? a.integer[i] : b.integer[i]) : std::min(std::max(a.integer[i], b.integer[i]), c.integer[i]);
    });
}

void constant(const Instruction &in, Register &to, std::size_t n) {
  if (isReal(in.type))
    each(n, [&](std::size_t i) { to.real[i] = in.real; });
  else
    each(n, [&](std::size_t i) { to.integer[i] = in.integer; });
}

void execute(const Instruction &in, std::vector<Register> &r, std::size_t n) {
  switch (in.kind) {
  case Node::Kind::Constant:
    return constant(in, r[in.to], n);
  case Node::Kind::Cast:
    return castRegister(in, r[in.to], r[in.a], n);
  case Node::Kind::Unary:
    return unary(in, r[in.to], r[in.a], n);
  case Node::Kind::Binary:
    return binary(in, r[in.to], r[in.a], r[in.b], n);
  case Node::Kind::Ternary:
    return ternary(in, r[in.to], r[in.a], r[in.b], r[in.c], n);
  case Node::Kind::PlaceHolder:
    return;
  }
}

} // namespace

bool isReal(Type type) { return type == poplar::FLOAT || type == poplar::HALF; }

void runElements(const State &state) {
  const ElementProgram &program = *static_cast<const ElementProgram *>(state.shared);
  const Slot &out = state.slots[0];
  thread_local std::vector<Register> registers;
  if (registers.size() < program.registers)
    registers.resize(program.registers);
  for (std::size_t begin = 0; begin < out.count; begin += block) {
    const std::size_t n = std::min(block, std::size_t(out.count) - begin);
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      const Slot &in = state.slots[i + 1];
      if (program.inputRegisters[i] == std::uint16_t(~0u))
        continue;
      Register &to = registers[program.inputRegisters[i]];
      const Type type = program.inputs[i];
      if (in.count > 1 || out.count == 1) {
        load(to, type, in.data + begin * type.size(), n);
      } else {
        load(to, type, in.data, 1);
        if (isReal(type))
          std::fill(to.real + 1, to.real + n, to.real[0]);
        else
          std::fill(to.integer + 1, to.integer + n, to.integer[0]);
      }
    }
    for (const Instruction &in : program.code)
      execute(in, registers, n);
    store(out.data + begin * program.output.size(), program.output, registers[program.result], n);
  }
}

const BuiltinKind elementKind{"popops.elements", &runElements, &readShared<ElementProgram>};

} // namespace poplibs
