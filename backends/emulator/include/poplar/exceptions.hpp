// Errors of the Poplar API; all derive from poplar_error.
#ifndef SNNC_POPLAR_EXCEPTIONS_HPP
#define SNNC_POPLAR_EXCEPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace poplar {

struct poplar_error : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::string getMessage() const { return what(); }
};

/// Location of a machine failure; the emulator's machines do not fail.
struct ErrorLocation {
  unsigned ipu = 0, tile = 0;
  bool operator==(const ErrorLocation &other) const { return ipu == other.ipu && tile == other.tile; }
};

#define SNNC_POPLAR_ERROR(Name)                                                                                                  \
  struct Name : poplar_error {                                                                                                   \
    using poplar_error::poplar_error;                                                                                            \
  };
SNNC_POPLAR_ERROR(file_load_error)
SNNC_POPLAR_ERROR(graph_connection_error)
SNNC_POPLAR_ERROR(graph_cycle_error)
SNNC_POPLAR_ERROR(graph_object_creation_error)
SNNC_POPLAR_ERROR(graph_object_load_error)
SNNC_POPLAR_ERROR(graph_program_compilation_error)
SNNC_POPLAR_ERROR(graph_recursion_error)
SNNC_POPLAR_ERROR(index_error)
SNNC_POPLAR_ERROR(invalid_machine_model)
SNNC_POPLAR_ERROR(invalid_option)
SNNC_POPLAR_ERROR(invalid_tile_mapping)
SNNC_POPLAR_ERROR(link_error)
SNNC_POPLAR_ERROR(memory_elem_constraints_error)
SNNC_POPLAR_ERROR(missing_cycle_estimate)
SNNC_POPLAR_ERROR(missing_graph_profile)
SNNC_POPLAR_ERROR(missing_perf_estimate)
SNNC_POPLAR_ERROR(missing_profile_data)
SNNC_POPLAR_ERROR(control_program_error)
SNNC_POPLAR_ERROR(no_environment)
SNNC_POPLAR_ERROR(no_size_specified)
SNNC_POPLAR_ERROR(graph_replication_error)
SNNC_POPLAR_ERROR(overflow_error)
SNNC_POPLAR_ERROR(parse_error)
SNNC_POPLAR_ERROR(profiling_disabled)
SNNC_POPLAR_ERROR(runtime_error)
SNNC_POPLAR_ERROR(stream_connection_error)
SNNC_POPLAR_ERROR(stream_memory_allocation_error)
SNNC_POPLAR_ERROR(tensor_creation_error)
SNNC_POPLAR_ERROR(symbol_error)
SNNC_POPLAR_ERROR(tensor_io_state_error)
SNNC_POPLAR_ERROR(tensor_metadata_error)
SNNC_POPLAR_ERROR(type_error)
SNNC_POPLAR_ERROR(unknown_field)
SNNC_POPLAR_ERROR(unknown_vertex_type)
#undef SNNC_POPLAR_ERROR

/// A program stopped itself: Abort, or AbortOnCondition with a true condition.
struct application_runtime_error : runtime_error {
  using runtime_error::runtime_error;
};

enum class RecoveryAction { IPU_RESET, PARTITION_RESET, FULL_RESET };

/// The machine failed; the emulator's does not.
struct system_runtime_error : runtime_error {
  using runtime_error::runtime_error;
};
struct recoverable_runtime_error : system_runtime_error {
  using system_runtime_error::system_runtime_error;
  RecoveryAction getRecoveryAction() const { return RecoveryAction::IPU_RESET; }
};
struct unrecoverable_runtime_error : system_runtime_error {
  using system_runtime_error::system_runtime_error;
};
struct unknown_runtime_error : system_runtime_error {
  using system_runtime_error::system_runtime_error;
};

/// A tile needs more memory than it has.
struct graph_memory_allocation_error : poplar_error {
  graph_memory_allocation_error(const std::string &message, unsigned onTile, std::uint64_t needed, std::uint64_t available)
      : poplar_error(message), tile(onTile), bytesNeeded(needed), bytesAvailable(available) {}
  unsigned tile;
  std::uint64_t bytesNeeded;
  std::uint64_t bytesAvailable;
  /// Path of the profile of a graph that does not fit: empty.
  std::string profilePath;
};

} // namespace poplar

#endif
