# find_package(poplar): the emulator's library and headers as the target `poplar`.
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

set(poplar_FOUND TRUE)
set(poplar_EMULATED TRUE)
unset(_poplar_prefix)
