# find_package(poplar), find_package(popops), …: the emulator's libraries and headers as targets.
get_filename_component(_poplar_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)

if(NOT TARGET poplar)
  add_library(poplar SHARED IMPORTED)
  set_target_properties(poplar PROPERTIES
    IMPORTED_LOCATION "${_poplar_prefix}/lib/libpoplar.so"
    IMPORTED_SONAME "libpoplar.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_poplar_prefix}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_11
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()

if(EXISTS "${_poplar_prefix}/lib/libpoplibs.so" AND NOT TARGET poplibs)
  add_library(poplibs SHARED IMPORTED)
  set_target_properties(poplibs PROPERTIES
    IMPORTED_LOCATION "${_poplar_prefix}/lib/libpoplibs.so"
    IMPORTED_SONAME "libpoplibs.so"
    INTERFACE_LINK_LIBRARIES poplar)
  foreach(_poplar_library poputil popops poplin popnn poprand popsparse popfloat gcl)
    add_library(${_poplar_library} INTERFACE IMPORTED)
    set_target_properties(${_poplar_library} PROPERTIES INTERFACE_LINK_LIBRARIES poplibs)
  endforeach()
  foreach(_poplar_library pva pvti)
    add_library(${_poplar_library} INTERFACE IMPORTED)
    set_target_properties(${_poplar_library} PROPERTIES INTERFACE_LINK_LIBRARIES poplar)
  endforeach()
  unset(_poplar_library)
endif()

# Headers of other libraries that programs include and a machine may lack: searched last.
if(EXISTS "${_poplar_prefix}/fallback")
  set_property(TARGET poplar PROPERTY INTERFACE_COMPILE_OPTIONS "SHELL:-idirafter \"${_poplar_prefix}/fallback\"")
endif()

# Code for older compilers: compilation is repeated if it fails because of a lambda outside a function.
if(EXISTS "${_poplar_prefix}/bin/launcher")
  # Also for targets outside the folder that calls find_package.
  set_property(GLOBAL PROPERTY RULE_LAUNCH_COMPILE "${_poplar_prefix}/bin/launcher")
endif()

# popc, for custom commands; popc_bin is the target's name in the SDK.
if(EXISTS "${_poplar_prefix}/bin/popc")
  set(POPC_EXECUTABLE "${_poplar_prefix}/bin/popc")
  foreach(_poplar_command popc popc_bin)
    if(NOT TARGET ${_poplar_command})
      add_executable(${_poplar_command} IMPORTED)
      set_target_properties(${_poplar_command} PROPERTIES IMPORTED_LOCATION "${POPC_EXECUTABLE}" IMPORTED_GLOBAL TRUE)
    endif()
  endforeach()
  unset(_poplar_command)
endif()

# poplar_add_codelets(<target> OUTPUT <file.gp> SOURCES <file.cpp>... [FLAGS <flag>...]): a target that compiles codelets with popc.
function(poplar_add_codelets _target)
  cmake_parse_arguments(_codelets "" "OUTPUT" "SOURCES;FLAGS" ${ARGN})
  if(NOT _codelets_OUTPUT OR NOT _codelets_SOURCES)
    message(FATAL_ERROR "poplar_add_codelets(${_target}): OUTPUT and SOURCES are needed")
  endif()
  get_filename_component(_output "${_codelets_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  set(_sources)
  foreach(_source ${_codelets_SOURCES})
    get_filename_component(_source "${_source}" ABSOLUTE)
    list(APPEND _sources "${_source}")
  endforeach()
  add_custom_command(OUTPUT "${_output}" COMMAND popc ${_sources} -o "${_output}" ${_codelets_FLAGS} DEPENDS ${_sources} VERBATIM)
  add_custom_target(${_target} ALL DEPENDS "${_output}")
endfunction()

set(${CMAKE_FIND_PACKAGE_NAME}_FOUND TRUE)
set(poplar_EMULATED TRUE)
unset(_poplar_prefix)
