// Short vectors of the IPU's registers.
#ifndef SNNC_POPLAR_VECTOR_TYPES_HPP
#define SNNC_POPLAR_VECTOR_TYPES_HPP

#include <poplar/HalfFloat.hpp>
#include <poplar/QuarterFloat.hpp>
#include <poplar/ShortVectors.hpp>

using float2 = snnc_float2;
using float4 = snnc_float4;
using half2 = snnc_half2;
using half4 = snnc_half4;
using short2 = snnc_short2;
using short4 = snnc_short4;
using ushort2 = snnc_ushort2;
using ushort4 = snnc_ushort4;
using int2 = snnc_int2;
using int4 = snnc_int4;
using long2 = snnc_int2;
using long4 = snnc_int4;
using uint2 = snnc_uint2;
using uint4 = snnc_uint4;
using char2 = snnc_char2;
using char4 = snnc_char4;
using uchar2 = snnc_uchar2;
using uchar4 = snnc_uchar4;
using rptsize_t = unsigned;

#endif
