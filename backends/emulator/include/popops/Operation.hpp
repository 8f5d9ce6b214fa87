// Another path of popops/OperationDef.hpp, which programs also include.
#ifndef SNNC_POPOPS_OPERATION_HPP
#define SNNC_POPOPS_OPERATION_HPP
#include <popops/OperationDef.hpp>
#endif
