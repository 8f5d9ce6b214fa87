// Rows of a whole segment as its kernels are given them: row t * batch + b belongs to step t of sample b.
#ifndef SNNC_WHOLE_ROWS_HPP
#define SNNC_WHOLE_ROWS_HPP

#include "gradients.hpp"

namespace snnc {

/// Rows that are read: spikes, 32 a word, or numbers; the other is null. Row `lead` belongs to row 0 of what is found.
struct WholeRows {
  const std::uint32_t *words;
  const float *numbers;
  int lead;
};

/// Rows of float32 that are written or, with `add`, added to. `bias` for each channel and `start` for each number of a row come on top; null: nothing.
struct WholeSums {
  float *data;
  int rows;
  bool add;
  const float *bias, *start;
};

} // namespace snnc

#endif
