// Checkpoints in time: rows of the steps before a segment, which the segment reads.
#ifndef SNNC_CHECKPOINTS_HPP
#define SNNC_CHECKPOINTS_HPP

#include "values.hpp"

namespace snnc {

class Checkpoints {
public:
  /// Forgets all rows; divides a sequence of `steps` into segments of `length`.
  void restart(int steps, int length);
  /// Stores the rows of `held` steps before each segment.
  void keep(Rows &rows, int held);
  /// Copies a worker's rows of the steps before step `first`, at which a segment begins.
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
