// A check of liveness: variables are spoilt as soon as they are dead.
#pragma once

#include "liveness.hpp"

namespace poplar::core {

/// Whether SNNC_SPOIL_DEAD is set: where a dead variable might share its room with another one, its bytes are overwritten with ones.
bool spoilsDead();
/// Fills EngineData::dying and deadAtStart.
void planSpoiling(EngineData &engine, const Usage &usage, const Liveness &liveness);
void spoil(EngineData &engine, const std::vector<std::uint32_t> &variables);

} // namespace poplar::core
