// Options of engines.
#pragma once

#include <poplar/OptionFlags.hpp>

namespace poplar::core {

/// Options from $POPLAR_ENGINE_OPTIONS (a JSON object), overridden by the program's own. Throws invalid_option if a name belongs to no
/// group of options that Poplar documents.
OptionFlags engineOptions(const OptionFlags &given);

} // namespace poplar::core
