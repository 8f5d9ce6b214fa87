// Location of a function's code while it does not run.
#ifndef SNNC_POPLAR_FUNCTION_BUFFER_MAPPING_TYPE_HPP
#define SNNC_POPLAR_FUNCTION_BUFFER_MAPPING_TYPE_HPP

namespace poplar {

enum class FunctionBufferMappingType {
  /// On the tiles.
  NONE,
  /// In streaming memory.
  REMOTE
};

} // namespace poplar

#endif
