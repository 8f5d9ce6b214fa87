// The number of copies of the graph that run in parallel.
#ifndef SNNC_POPLAR_REPLICATION_FACTOR_HPP
#define SNNC_POPLAR_REPLICATION_FACTOR_HPP

namespace poplar {

struct replication_factor {
  constexpr explicit replication_factor(unsigned copies) : value(copies) {}
  constexpr operator unsigned() const { return value; }
  unsigned value;
};

} // namespace poplar

#endif
