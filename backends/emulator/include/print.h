// printf inside a codelet.
#ifndef SNNC_PRINT_H
#define SNNC_PRINT_H
#include <cstdio>
#endif
