// The names of the operations of expressions.
#ifndef SNNC_POPOPS_EXPR_OP_UTILS_HPP
#define SNNC_POPOPS_EXPR_OP_UTILS_HPP
#include <iosfwd>
#include <popops/ExprOp.hpp>
namespace popops {
namespace expr {
namespace ostream_ext {
std::ostream &operator<<(std::ostream &stream, const UnaryOpType &op);
std::ostream &operator<<(std::ostream &stream, const BinaryOpType &op);
std::ostream &operator<<(std::ostream &stream, const TernaryOpType &op);
} // namespace ostream_ext
} // namespace expr
} // namespace popops
#endif
