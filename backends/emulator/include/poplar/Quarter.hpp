#ifndef SNNC_POPLAR_QUARTER_HPP
#define SNNC_POPLAR_QUARTER_HPP
#include <poplar/QuarterFloat.hpp>
#endif
