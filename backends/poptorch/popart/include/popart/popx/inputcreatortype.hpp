// Substitute for the enumeration with which an operation reports whether it lays out an input.
#ifndef SNNC_POPART_POPX_INPUTCREATORTYPE_HPP
#define SNNC_POPART_POPX_INPUTCREATORTYPE_HPP

namespace popart {
namespace popx {

enum class InputCreatorType { CanCreate, CanUnwind, CanCreateOrUnwind, Deadend, CanDelegate, CanDelegateOrUnwind };

} // namespace popx
} // namespace popart

#endif
