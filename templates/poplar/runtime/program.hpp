// Included by host.cpp: the parts of the program that are the same for every network.
#ifndef SNNC_PROGRAM_HPP
#define SNNC_PROGRAM_HPP

#include "gradient_windows.hpp"
#include "indexed.hpp"
#include "packing.hpp"
#include "poplar_session.hpp"
#include "streaming.hpp"

#endif
