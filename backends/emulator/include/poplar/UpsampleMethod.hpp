// How elements are repeated.
#ifndef SNNC_POPLAR_UPSAMPLE_METHOD_HPP
#define SNNC_POPLAR_UPSAMPLE_METHOD_HPP

namespace poplar {

enum class UpsampleMethod { REPEAT };

} // namespace poplar

#endif
