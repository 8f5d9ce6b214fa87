// The name by which older codelets include the constants of a tile.
#ifndef SNNC_ARCH_GC_TILE_DEFINES_H
#define SNNC_ARCH_GC_TILE_DEFINES_H
#include <poplar/TileConstants.hpp>
#endif
