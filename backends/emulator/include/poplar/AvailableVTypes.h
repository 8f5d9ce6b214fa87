// Vector layouts that this compiler supports: none that needs a scaled pointer.
#ifndef SNNC_POPLAR_AVAILABLE_VTYPES_H
#define SNNC_POPLAR_AVAILABLE_VTYPES_H
#define VECTOR_AVAIL_SHORT_SPAN
#define VECTOR_AVAIL_ONE_PTR
#define VECTOR_AVAIL_SPAN
#endif
