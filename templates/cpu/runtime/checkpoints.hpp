// Checkpoints in time: rows of the steps before each segment, from which the segment is computed again.
#ifndef SNNC_CHECKPOINTS_HPP
#define SNNC_CHECKPOINTS_HPP

#include "values.hpp"

namespace snnc {

class Checkpoints {
public:
  /// Deletes all rows, and divides a sequence of `steps` steps into segments of `length` steps.
  void restart(int steps, int length);
  /// Registers rows, of which `held` steps before each segment are to be stored.
  void keep(Rows &rows, int held);
  /// Stores a worker's rows of the steps before step `first`, the first of a segment.
  void save(const Worker &w, int first);
  void restore(const Worker &w, int first);

private:
  struct Kept {
    Rows *rows;
    int held;
    Array<float> numbers;
  };
  int segments = 0, segment = 1;
  std::vector<Kept> all;

  float *place(Kept &of, const Worker &w, int first, int before) const;
};

} // namespace snnc

#endif
