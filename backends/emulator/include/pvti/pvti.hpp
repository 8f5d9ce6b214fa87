// Trace points of a host program: accepted and ignored.
#ifndef SNNC_PVTI_PVTI_HPP
#define SNNC_PVTI_PVTI_HPP

#include <string>

namespace pvti {

class TraceChannel {
public:
  TraceChannel(const std::string &name) : name_(name) {}
  const std::string &name() const { return name_; }

private:
  std::string name_;
};
inline TraceChannel createTraceChannel(const std::string &name) { return TraceChannel(name); }

class Tracepoint {
public:
  Tracepoint(TraceChannel *, const std::string &) {}
  Tracepoint(const TraceChannel &, const std::string &) {}
  static void begin(TraceChannel *, const std::string &) {}
  static void end(TraceChannel *, const std::string &) {}
  static void event(TraceChannel *, const std::string &) {}
};

template <class Value> class Series {
public:
  explicit Series(const std::string &) {}
  void add(Value) {}
};
using SeriesDouble = Series<double>;
class Graph {
public:
  Graph(const std::string &, const std::string &) {}
  Series<double> addSeries(const std::string &name) { return Series<double>(name); }
};

} // namespace pvti

#define PVTI_TRACEPOINT(...)

#endif
