// The kinds of machines that a program can ask for.
#ifndef SNNC_POPLAR_TARGET_TYPE_HPP
#define SNNC_POPLAR_TARGET_TYPE_HPP

#include <ostream>
#include <string>

namespace poplar {

enum class TargetType { IPU, IPU_MODEL, CPU };

inline std::string toString(const TargetType &type) { return type == TargetType::IPU ? "IPU" : type == TargetType::CPU ? "CPU" : "IPU_MODEL"; }

inline std::ostream &operator<<(std::ostream &os, TargetType type) { return os << toString(type); }

} // namespace poplar

#endif
