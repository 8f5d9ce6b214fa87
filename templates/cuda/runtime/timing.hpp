// Times of kernels, measured between events in their stream.
#ifndef SNNC_TIMING_HPP
#define SNNC_TIMING_HPP

#include "streams.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace snnc {
namespace device {

#if defined(SNNC_ON_HOST)

/// A point in time. In a check on the CPU, kernels run immediately, so the host's clock measures them.
class Moment {
public:
  void record() { at = std::chrono::steady_clock::now(); }
  void wait() {}
  double seconds_after(const Moment &before) const { return std::chrono::duration<double>(at - before.at).count(); }

private:
  std::chrono::steady_clock::time_point at;
};

#else

/// A point in time in the current stream.
class Moment {
public:
  Moment() { check(cudaEventCreate(&event), "an event"); }
  Moment(const Moment &) = delete;
  Moment &operator=(const Moment &) = delete;
  ~Moment() { cudaEventDestroy(event); }
  void record() { check(cudaEventRecord(event, stream()), "an event"); }
  void wait() { check(cudaEventSynchronize(event), "a kernel"); }
  double seconds_after(const Moment &before) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, before.event, event), "the time of a kernel");
    return 1e-3 * static_cast<double>(milliseconds);
  }

private:
  cudaEvent_t event{};
};

#endif

/// Sums the times of a session's kernels over training steps. A kernel's time lasts until the next one begins, so it includes the gap between them.
class KernelTimes {
public:
  KernelTimes();
  ~KernelTimes();
  bool running() const { return runs; }
  void start() {
    runs = true;
    used = 0;
  }
  /// Stops the timer of the previous kernel and starts that of `kernel`; a negative number is not timed.
  void begin(int kernel) {
    if (runs)
      mark(kernel);
  }
  /// Waits for the kernels of a step, and adds their times.
  void finish(int kernels);
  /// Forgets a step that failed.
  void stop() { runs = false; }

  /// Returns the microseconds of each kernel per step as JSON; null for a kernel that was not timed. Empty if no step was timed.
  std::string text() const;

private:
  std::vector<std::pair<int, std::unique_ptr<Moment>>> marks;
  std::size_t used = 0;
  std::vector<double> sums;
  int steps = 0;
  bool runs = false;

  void mark(int kernel);
};

} // namespace device
} // namespace snnc

#endif
