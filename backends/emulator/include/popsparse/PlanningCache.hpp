// The type of a cache of plans, which has no effect in the emulator.
#ifndef SNNC_POPSPARSE_PLANNING_CACHE_HPP
#define SNNC_POPSPARSE_PLANNING_CACHE_HPP
#include <poplin/MatMul.hpp>
namespace popsparse {
namespace dynamic {
/// Plans that operations share; the emulator needs none.
class PlanningCache {
public:
  PlanningCache() = default;
  PlanningCache(poplin::PlanningCache *) {}
};
} // namespace dynamic
namespace static_ {
using PlanningCache = dynamic::PlanningCache;
}
} // namespace popsparse
#endif
