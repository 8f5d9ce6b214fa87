// Substitute for the element types of PopART.
#ifndef SNNC_POPART_DATATYPE_HPP
#define SNNC_POPART_DATATYPE_HPP

namespace popart {

enum class DataType { UINT8, INT8, UINT16, INT16, INT32, INT64, UINT32, UINT64, BOOL, FLOAT, FLOAT16, BFLOAT16, DOUBLE, COMPLEX64, COMPLEX128, STRING, UNDEFINED };

} // namespace popart

#endif
