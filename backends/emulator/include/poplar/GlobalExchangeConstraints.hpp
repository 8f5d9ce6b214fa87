// Bandwidths of the links between IPUs, as programs describe them to a model.
#ifndef SNNC_POPLAR_GLOBAL_EXCHANGE_CONSTRAINTS_HPP
#define SNNC_POPLAR_GLOBAL_EXCHANGE_CONSTRAINTS_HPP

#include <vector>

#include <poplar/ArrayRef.hpp>

namespace poplar {

/// Data that one IPU sends to another.
struct GlobalExchangeFlow {
  unsigned src, dst;
  GlobalExchangeFlow(unsigned src, unsigned dst) : src(src), dst(dst) {}
  friend bool operator==(const GlobalExchangeFlow &a, const GlobalExchangeFlow &b) { return a.src == b.src && a.dst == b.dst; }
  friend bool operator!=(const GlobalExchangeFlow &a, const GlobalExchangeFlow &b) { return !(a == b); }
};

/// The bits per second that all of these flows have together.
struct GlobalExchangeConstraint {
  double bandwidth;
  std::vector<GlobalExchangeFlow> flows;
  GlobalExchangeConstraint(double bandwidth, ArrayRef<GlobalExchangeFlow> flows) : bandwidth(bandwidth), flows(flows.begin(), flows.end()) {}
};

} // namespace poplar

#endif
