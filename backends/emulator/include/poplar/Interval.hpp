// A half-open range of element indices.
#ifndef SNNC_POPLAR_INTERVAL_HPP
#define SNNC_POPLAR_INTERVAL_HPP

#include <cstddef>
#include <ostream>
#include <tuple>

namespace poplar {

template <class T> class GenericInterval {
public:
  GenericInterval() = default;
  GenericInterval(T begin, T end) : begin_(begin), end_(end) {}
  const T &begin() const { return begin_; }
  const T &end() const { return end_; }
  const T &lower() const { return begin_; }
  const T &upper() const { return end_; }
  T size() const { return end_ - begin_; }

  friend bool operator==(const GenericInterval &a, const GenericInterval &b) { return a.key() == b.key(); }
  friend bool operator!=(const GenericInterval &a, const GenericInterval &b) { return a.key() != b.key(); }
  friend bool operator<(const GenericInterval &a, const GenericInterval &b) { return a.key() < b.key(); }
  friend bool operator>(const GenericInterval &a, const GenericInterval &b) { return b < a; }
  friend bool operator<=(const GenericInterval &a, const GenericInterval &b) { return !(b < a); }
  friend bool operator>=(const GenericInterval &a, const GenericInterval &b) { return !(a < b); }
  friend std::ostream &operator<<(std::ostream &os, const GenericInterval &interval) {
    return os << "[" << interval.begin_ << "," << interval.end_ << ")";
  }

private:
  std::tuple<T, T> key() const { return {begin_, end_}; }

  T begin_ = 0, end_ = 0;
};

using Interval = GenericInterval<std::size_t>;

} // namespace poplar

#endif
