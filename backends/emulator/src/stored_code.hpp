// Machine code of codelets inside a file.
#pragma once

#include <string>
#include <vector>

#include "codelets.hpp"

namespace poplar::core {

/// A table with the bytes of its libraries, without their paths. Throws file_load_error where a library is no longer there.
CodeletTable withCode(const CodeletTable &table);
/// Adds what withCode gave, in this process or another.
void addStored(CodeletLibrary &codelets, CodeletTable table);
/// What a processor must share with another to run its code: the instructions that it has.
std::string processorKind();

} // namespace poplar::core
