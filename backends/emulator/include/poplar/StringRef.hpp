// A name.
#ifndef SNNC_POPLAR_STRING_REF_HPP
#define SNNC_POPLAR_STRING_REF_HPP
#include <string>
namespace poplar {
using StringRef = std::string;
}
#endif
