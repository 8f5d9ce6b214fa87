// The names of the operations of reductions.
#ifndef SNNC_POPOPS_OPERATION_DEF_UTIL_HPP
#define SNNC_POPOPS_OPERATION_DEF_UTIL_HPP
#include <string>
#include <popops/Operation.hpp>
#include <poputil/VertexTemplates.hpp>
namespace poputil {
/// "Add", "Square Add", …
const char *asString(const popops::Operation &op);
template <> struct VertexTemplateToString<popops::Operation> {
  static std::string to_string(const popops::Operation &op) {
    constexpr const char *names[] = {"ADD", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOG_ADD"};
    return std::string("popops::Operation::") + names[int(op)];
  }
};
} // namespace poputil
#endif
