// Expressions prepared for execution: typed instructions over blocks of elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poplar/Type.hpp>
#include <popops/Expr.hpp>

#include "builtin.hpp"

namespace poplibs {

/// One instruction, whose result goes to register `to`. Registers hold floats, or 64-bit integers wrapped to their type.
struct Instruction {
  popops::expr::Node::Kind kind;
  int op;
  /// Types of the operands and of the result.
  Type from, type;
  std::uint16_t to = 0, a = 0, b = 0, c = 0;
  float real = 0;
  std::int64_t integer = 0;
};

struct ElementProgram {
  std::vector<Instruction> code;
  std::vector<Type> inputs;
  /// Register of each input, or ~0 if it is not used.
  std::vector<std::uint16_t> inputRegisters;
  std::uint16_t result = 0, registers = 0;
  Type output;
  std::string text;
};

template <class Archive> void describe(Archive &a, Instruction &i) {
  a(i.kind)(i.op)(i.from)(i.type)(i.to)(i.a)(i.b)(i.c)(i.real)(i.integer);
}
template <class Archive> void describe(Archive &a, ElementProgram &p) {
  a(p.code)(p.inputs)(p.inputRegisters)(p.result)(p.registers)(p.output)(p.text);
}

/// Types are derived: constants get the type of the other operand; comparisons give BOOL. Throws poplibs_error if types do not match.
ElementProgram compileExpression(const popops::expr::Expr &expression, const std::vector<Type> &inputs);
/// Runs the program of `state.shared` on the slots after the first; the result goes to the first.
void runElements(const State &state);
/// Worker cycles for `n` elements. `inPlace`: the result is written to an operand.
std::uint64_t elementCycles(const ElementProgram &program, std::size_t n, bool inPlace);
bool isReal(Type type);

} // namespace poplibs
