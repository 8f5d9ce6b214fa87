// Substitute for the type names of PopART.
#ifndef SNNC_POPART_NAMES_HPP
#define SNNC_POPART_NAMES_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace popart {

using Shape = std::vector<std::int64_t>;
using InIndex = int;
using OutIndex = int;
using OpDomain = std::string;
using OpType = std::string;
using OpVersion = unsigned;
using TensorId = std::string;

} // namespace popart

#endif
