// Runs the codelet compiler.
#pragma once

#include <string>

namespace poplar::core {

/// Compiles a codelet file (or finds it in the cache) and returns the path of its table.
std::string runPopc(const std::string &source, const std::string &flags);

} // namespace poplar::core
