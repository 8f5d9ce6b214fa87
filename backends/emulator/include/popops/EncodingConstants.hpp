// Constants that programs and vertices of losses share.
#ifndef SNNC_POPOPS_ENCODING_CONSTANTS_HPP
#define SNNC_POPOPS_ENCODING_CONSTANTS_HPP
/// A label that represents no class.
#define MASKED_LABEL_CODE 0xFFFFFFFFU
/// The smallest arguments of logarithms.
#define EPS_LOG_N_FLOAT (1.17549435e-38F)
#define EPS_LOG_N_HALF (0.000000059605F)
#endif
