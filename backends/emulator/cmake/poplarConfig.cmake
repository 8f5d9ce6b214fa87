# find_package(poplar), find_package(popops), …: the emulator's libraries and headers as targets.
get_filename_component(_poplar_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)

if(NOT TARGET poplar)
  add_library(poplar SHARED IMPORTED)
  set_target_properties(poplar PROPERTIES
    IMPORTED_LOCATION "${_poplar_prefix}/lib/libpoplar.so"
    IMPORTED_SONAME "libpoplar.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_poplar_prefix}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()

if(EXISTS "${_poplar_prefix}/lib/libpoplibs.so" AND NOT TARGET poplibs)
  add_library(poplibs SHARED IMPORTED)
  set_target_properties(poplibs PROPERTIES
    IMPORTED_LOCATION "${_poplar_prefix}/lib/libpoplibs.so"
    IMPORTED_SONAME "libpoplibs.so"
    INTERFACE_LINK_LIBRARIES poplar)
  foreach(_poplar_library poputil popops poplin popnn poprand popsparse popfloat gcl pva)
    add_library(${_poplar_library} INTERFACE IMPORTED)
    set_target_properties(${_poplar_library} PROPERTIES INTERFACE_LINK_LIBRARIES poplibs)
  endforeach()
  unset(_poplar_library)
endif()

# Headers for what programs include beside Poplar's and a machine may lack: searched last.
if(EXISTS "${_poplar_prefix}/fallback")
  set_property(TARGET poplar PROPERTY INTERFACE_COMPILE_OPTIONS "SHELL:-idirafter \"${_poplar_prefix}/fallback\"")
endif()

# What older compilers took compiles: a second try where the first fails for a lambda outside of functions.
if(EXISTS "${_poplar_prefix}/bin/launcher")
  set_property(DIRECTORY PROPERTY RULE_LAUNCH_COMPILE "${_poplar_prefix}/bin/launcher")
endif()

# popc, for custom commands.
if(EXISTS "${_poplar_prefix}/bin/popc")
  set(POPC_EXECUTABLE "${_poplar_prefix}/bin/popc")
  if(NOT TARGET popc)
    add_executable(popc IMPORTED)
    set_target_properties(popc PROPERTIES IMPORTED_LOCATION "${POPC_EXECUTABLE}")
  endif()
endif()

set(${CMAKE_FIND_PACKAGE_NAME}_FOUND TRUE)
set(poplar_EMULATED TRUE)
unset(_poplar_prefix)
