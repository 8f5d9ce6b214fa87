// Included by operation.cpp: the parts of the operation that are the same for every network.
#ifndef SNNC_PROGRAM_HPP
#define SNNC_PROGRAM_HPP

#include "gradient_windows.hpp"
#include "indexed.hpp"
#include "operation_graph.hpp"
#include "packing.hpp"
#include "streaming.hpp"

#include <popart/error.hpp>
#include <popart/op.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/popx/inputcreatortype.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>
#include <popart/tensorinfo.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#endif
