// Plans made in advance, which the emulator does not need.
#ifndef SNNC_POPLIN_CONV_PREPLAN_HPP
#define SNNC_POPLIN_CONV_PREPLAN_HPP
#include <set>
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
namespace poplin {
inline void preplan(const std::set<ConvPlanParams> &, const std::set<MatMulPlanParams> &, PlanningCache &) {}
} // namespace poplin
#endif
