#ifndef SNNC_POPLAR_TARGET_TYPE_HPP
#define SNNC_POPLAR_TARGET_TYPE_HPP

namespace poplar {

enum class TargetType { IPU, IPU_MODEL, CPU };

} // namespace poplar

#endif
