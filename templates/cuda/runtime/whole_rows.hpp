// Rows of a whole segment, as arguments of kernels: row t * batch + b belongs to step t of sample b.
#ifndef SNNC_WHOLE_ROWS_HPP
#define SNNC_WHOLE_ROWS_HPP

#include "gradients.hpp"

namespace snnc {

/// Source rows: spikes, 32 per word, or numbers; the other pointer is null. Row `lead` belongs to row 0 of the result.
struct WholeRows {
  const std::uint32_t *words;
  const float *numbers;
  int lead;
};

/// Float32 rows that are written or, with `add`, added to. `bias` (per channel) and `start` (per value of a row) are added; null: nothing.
struct WholeSums {
  float *data;
  int rows;
  bool add;
  const float *bias, *start;
};

} // namespace snnc

#endif
