// ---- all codelets ---------------------------------------------------------------------------------------------------------------

namespace {

/// No step: greater than any negative step of a delayed bus.
constexpr int NO_STEP = -1000000000;

/// Returns the step for which `iteration == interval * step + offset`, or NO_STEP.
inline int step_of(int iteration, int offset, int interval) {
  const int distance = iteration - offset;
  return distance % interval == 0 ? distance / interval : NO_STEP;
}

} // namespace
