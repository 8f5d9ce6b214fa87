// Another path of poplar/TileConstants.hpp, which programs also include.
#ifndef SNNC_BARE_TILE_CONSTANTS_HPP
#define SNNC_BARE_TILE_CONSTANTS_HPP
#include <poplar/TileConstants.hpp>
#endif
