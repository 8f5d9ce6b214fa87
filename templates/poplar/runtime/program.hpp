// What host.cpp includes: the parts of the program that no network changes.
#ifndef SNNC_PROGRAM_HPP
#define SNNC_PROGRAM_HPP

#include "gradient_windows.hpp"
#include "indexed.hpp"
#include "packing.hpp"
#include "poplar_session.hpp"
#include "streaming.hpp"

#endif
