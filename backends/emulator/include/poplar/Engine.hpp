// A compiled graph that can be run.
#ifndef SNNC_POPLAR_ENGINE_HPP
#define SNNC_POPLAR_ENGINE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <poplar/ArrayRef.hpp>
#include <poplar/Device.hpp>
#include <poplar/EmulatorProfile.hpp>
#include <poplar/Executable.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplar/Program.hpp>
#include <poplar/StreamCallback.hpp>
#include <poplar/core/Language.hpp>

namespace pva {
class Report;
}

namespace poplar {

namespace core {
struct EngineData;
}

class Engine {
public:
  Engine(const Graph &graph, const program::Program &program, const OptionFlags &options = {});
  Engine(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &options = {});
  Engine(const Graph &graph, const std::vector<program::Program> &programs, const OptionFlags &options = {})
      : Engine(graph, ArrayRef<program::Program>(programs), options) {}
  Engine(const Graph &graph, std::initializer_list<program::Program> programs, const OptionFlags &options = {})
      : Engine(graph, ArrayRef<program::Program>(programs.begin(), programs.size()), options) {}
  Engine(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &options, const ProgressFunc &progress)
      : Engine(graph, programs, options) {
    if (progress)
      progress(1, 1);
  }
  Engine(const Executable &executable, const OptionFlags &options = {});
  Engine(Engine &&) noexcept;
  Engine &operator=(Engine &&) noexcept;
  ~Engine();

  void load(const Device &device);
  void prepare(const Device &device) { load(device); }
  void deploy() {}
  void run(unsigned program = 0, const std::string &debugName = "");
  /// With RuntimeOptions (poplar/RuntimeOptions.hpp), which have no effect here.
  template <class Options, class = core::EnableIf<std::is_base_of<OptionFlags, Options>::value>>
  void run(unsigned program, const std::string &debugName, const Options &) {
    run(program, debugName);
  }
  template <class Options, class = core::EnableIf<std::is_base_of<OptionFlags, Options>::value>> void run(unsigned program, const Options &) {
    run(program);
  }
  void loadAndRun(const Device &device, unsigned program = 0, const std::string &debugName = "") {
    load(device);
    run(program, debugName);
  }
  /// Does nothing: a run has ended when `run` returns.
  void stop() {}

  void connectStream(const std::string &handle, void *begin, void *end);
  /// A fixed address: every transfer starts at `pointer`.
  void connectStream(const std::string &handle, void *pointer);
  template <class T> void connectStream(const std::string &handle, ArrayRef<T> values) {
    connectStream(handle, const_cast<T *>(values.begin()), const_cast<T *>(values.end()));
  }
  void connectStream(const DataStream &stream, void *begin, void *end) { connectStream(stream.handle(), begin, end); }
  void connectStream(const DataStream &stream, void *pointer) { connectStream(stream.handle(), pointer); }
  void connectStreamToCallback(const std::string &handle, StreamCallbackHandle callback);
  void connectStreamToCallback(const DataStream &stream, StreamCallbackHandle callback) {
    connectStreamToCallback(stream.handle(), std::move(callback));
  }
  /// As above, for the stream of one replica.
  void connectStreamToCallback(const std::string &handle, unsigned replica, StreamCallbackHandle callback);
  void disconnectStream(const std::string &handle);
  /// As above, for one replica; the replicas take turns.
  void connectHostFunction(const std::string &handle, unsigned replica, HostCallbackHandle callback);

  void readTensor(const std::string &handle, void *begin, void *end);
  void writeTensor(const std::string &handle, const void *begin, const void *end);
  /// As above, without an end (for older programs): as many bytes as the tensor has.
  void readTensor(const std::string &handle, void *values);
  void writeTensor(const std::string &handle, const void *values);
  template <class T> void writeTensor(const std::string &handle, ArrayRef<T> values) { writeTensor(handle, values.begin(), values.end()); }
  template <class T> void writeTensor(const std::string &handle, std::initializer_list<T> values) {
    writeTensor(handle, values.begin(), values.end());
  }
  template <class T> void writeTensor(const std::string &handle, const std::vector<T> &values) { writeTensor(handle, ArrayRef<T>(values)); }
  template <class T> void readTensor(const std::string &handle, std::vector<T> &values) {
    readTensor(handle, values.data(), values.data() + values.size());
  }

  /// One row of a remote buffer; each replica has its own buffer.
  void copyToRemoteBuffer(const void *values, const std::string &handle, std::uint64_t repeatIndex, unsigned replicaIndex = 0);
  void copyFromRemoteBuffer(const std::string &handle, void *values, std::uint64_t repeatIndex, unsigned replicaIndex = 0);
  /// As above, with the end of the values, whose number is checked.
  template <class T>
  void copyToRemoteBuffer(ArrayRef<T> values, const std::string &handle, std::uint64_t repeatIndex, unsigned replicaIndex = 0) {
    requireRow(handle, values.size() * sizeof(T));
    copyToRemoteBuffer(static_cast<const void *>(values.begin()), handle, repeatIndex, replicaIndex);
  }
  template <class T>
  void copyFromRemoteBuffer(const std::string &handle, const ArrayRef<T> &values, std::uint64_t repeatIndex, unsigned replicaIndex = 0) {
    requireRow(handle, values.size() * sizeof(T));
    copyFromRemoteBuffer(handle, static_cast<void *>(const_cast<T *>(values.begin())), repeatIndex, replicaIndex);
  }

  /// Times on the host.
  struct TimerTimePoint {
    std::chrono::steady_clock::time_point time;
  };
  static TimerTimePoint getTimeStamp() { return {std::chrono::steady_clock::now()}; }
  /// Logs a host time if $POPLAR_LOG_LEVEL is INFO or more detailed.
  void reportTiming(const std::string &timerName, const TimerTimePoint &start, const TimerTimePoint &end);
  /// These times as text.
  static std::string reportTiming(const TimerTimePoint &start, const TimerTimePoint &end);

  /// Cycles and similar numbers are always counted.
  void enableExecutionProfiling() {}
  void disableExecutionProfiling() {}
  std::string getProgramName(unsigned program) const { return "program" + std::to_string(program); }
  void setPrintTensorStream(std::ostream &stream);
  void setPrintStream(std::ostream &stream) { setPrintTensorStream(stream); }
  void printProfileSummary(std::ostream &stream, const OptionFlags &options = {});
  void resetExecutionProfile();
  /// Writes when each tile computed, and when all tiles exchanged data or waited, as comma-separated values: begin, end (device cycles),
  /// tile, kind of program, name. Without an option that requests execution reports (debug.instrument), no lines follow the header.
  void reportIntervals(std::ostream &stream) const;
  /// The profile of compilation, as pva::openReport reads it from a file (pva/pva.hpp), and that of the runs if options request it.
  pva::Report getReport(bool reportExecution = true) const;
  /// For older programs: both functions return the emulator's whole profile.
  ProfileValue getGraphProfile() const;
  ProfileValue getExecutionProfile() const { return getGraphProfile(); }

  /// Emulator extension.
  EmulatorProfile getEmulatorProfile() const;

private:
  void requireRow(const std::string &handle, std::size_t bytes) const;
  void build(std::shared_ptr<core::GraphData> graph, ArrayRef<program::Program> programs, const OptionFlags &options);

  std::unique_ptr<core::EngineData> data_;
};

} // namespace poplar

#endif
