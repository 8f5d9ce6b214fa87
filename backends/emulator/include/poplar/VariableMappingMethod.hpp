// Mapping of a new variable.
#ifndef SNNC_POPLAR_VARIABLE_MAPPING_METHOD_HPP
#define SNNC_POPLAR_VARIABLE_MAPPING_METHOD_HPP
namespace poplar {
enum class VariableMappingMethod { NONE, LINEAR };
}
#endif
