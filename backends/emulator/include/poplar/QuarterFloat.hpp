// quarter: eight bits whose meaning is given by a separate byte of metadata. It is stored, but has no arithmetic.
#ifndef SNNC_POPLAR_QUARTER_FLOAT_HPP
#define SNNC_POPLAR_QUARTER_FLOAT_HPP

#include <cstdint>

struct quarter {
  std::uint8_t bits;
};

namespace poplar {
/// How the bits of a quarter are interpreted: 1.4.3 or 1.5.2, with a scale.
struct quarter_metadata {
  enum class format { f143, f152 };
  std::uint8_t value = 0;
};
} // namespace poplar

#endif
