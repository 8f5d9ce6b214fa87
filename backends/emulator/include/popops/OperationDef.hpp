// Operations of reductions.
#ifndef SNNC_POPOPS_OPERATION_DEF_HPP
#define SNNC_POPOPS_OPERATION_DEF_HPP

namespace popops {

enum class Operation { ADD, MUL, MIN, MAX, LOGICAL_AND, LOGICAL_OR, SQUARE_ADD, LOG_ADD };

} // namespace popops

#endif
