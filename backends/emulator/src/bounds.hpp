// A check that vertices write inside their outputs and leave their inputs as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "superstep.hpp"

namespace poplar::core {

/// Of either side of every field.
constexpr std::size_t guardBytes = 64;

/// Whether SNNC_CHECK_BOUNDS asks for it: every edge is then staged between guards.
bool checksBounds();

/// Sets the guards of a call and takes the sums of its inputs.
void setGuards(const Superstep &step, const VertexCall &call, char *scratch, std::vector<std::uint64_t> &sums);
/// Throws application_runtime_error, naming the field, where a guard or an input changed.
void checkGuards(const Superstep &step, const VertexCall &call, const char *scratch, const std::vector<std::uint64_t> &sums);

} // namespace poplar::core
