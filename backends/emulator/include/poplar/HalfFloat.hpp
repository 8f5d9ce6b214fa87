// half: IEEE binary16, rounded after every operation.
#ifndef SNNC_POPLAR_HALF_FLOAT_HPP
#define SNNC_POPLAR_HALF_FLOAT_HPP

using half = _Float16;

#endif
