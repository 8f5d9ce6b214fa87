// A check that vertices write only inside their outputs and do not change their inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "superstep.hpp"

namespace poplar::core {

/// Size of the guard on each side of every field.
constexpr std::size_t guardBytes = 64;

/// Whether SNNC_CHECK_BOUNDS requests the check: every edge is then staged between guards.
bool checksBounds();

/// Sets the guards for a call and stores check sums of its inputs.
void setGuards(const Superstep &step, const VertexCall &call, char *scratch, std::vector<std::uint64_t> &sums);
/// Throws application_runtime_error, naming the field, if a guard or an input changed.
void checkGuards(const Superstep &step, const VertexCall &call, const char *scratch, const std::vector<std::uint64_t> &sums);

} // namespace poplar::core
