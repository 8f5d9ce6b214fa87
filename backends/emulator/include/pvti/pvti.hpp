// Trace points of a host program: accepted and ignored.
#ifndef SNNC_PVTI_PVTI_HPP
#define SNNC_PVTI_PVTI_HPP

#include <cstddef>
#include <string>
#include <utility>

namespace pvti {

class TraceChannel {
public:
  TraceChannel(const std::string &name) : name_(name) {}
  const std::string &name() const { return name_; }

private:
  std::string name_;
};
inline TraceChannel createTraceChannel(const std::string &name) { return TraceChannel(name); }

/// What a trace point records besides its name, as JSON.
class Metadata {
public:
  explicit Metadata(std::string json) : json_(std::move(json)) {}
  const std::string &json() const { return json_; }

private:
  std::string json_;
};
inline Metadata createJsonMetadata(const std::string &json) { return Metadata(json); }

class Tracepoint {
public:
  Tracepoint(TraceChannel *, const std::string &, const Metadata * = nullptr) {}
  Tracepoint(const TraceChannel &, const std::string &, const Metadata * = nullptr) {}
  Tracepoint(TraceChannel *, const char *, std::size_t, const Metadata * = nullptr) {}
  static void begin(TraceChannel *, const std::string &, const Metadata * = nullptr) {}
  static void end(TraceChannel *, const std::string &, const Metadata * = nullptr) {}
  static void event(TraceChannel *, const std::string &, const Metadata * = nullptr) {}
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
