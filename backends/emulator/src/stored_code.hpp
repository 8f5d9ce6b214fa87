// Machine code of codelets in a file.
#pragma once

#include <string>
#include <vector>

#include "codelets.hpp"

namespace poplar::core {

/// A table with the bytes of its libraries, without their paths. Throws file_load_error if a library no longer exists.
CodeletTable withCode(const CodeletTable &table);
/// Adds the result of withCode, from this process or another.
void addStored(CodeletLibrary &codelets, CodeletTable table);
/// The instruction set extensions that a CPU must have to run this processor's code.
std::string processorKind();

} // namespace poplar::core
