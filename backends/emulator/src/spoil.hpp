// A check of liveness: variables are overwritten as soon as they are dead.
#pragma once

#include "liveness.hpp"

namespace poplar::core {

/// Whether SNNC_SPOIL_DEAD is set: a dead variable that might share its memory with another is overwritten with ones.
bool spoilsDead();
/// Fills EngineData::dying and deadAtStart.
void planSpoiling(EngineData &engine, const Usage &usage, const Liveness &liveness);
void spoil(EngineData &engine, const std::vector<std::uint32_t> &variables);

} // namespace poplar::core
