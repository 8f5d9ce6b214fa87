// Loops whose length is known to fit a repeat instruction.
#ifndef SNNC_POPLAR_LOOPS_HPP
#define SNNC_POPLAR_LOOPS_HPP
#include <poplar/VectorTypes.hpp>
namespace poplar {
/// Calls body(i) for i below `count`.
template <class Count, class Body> inline void rptFor(Count count, Body body) {
  for (Count i = 0; i < count; ++i)
    body(i);
}
} // namespace poplar
#endif
