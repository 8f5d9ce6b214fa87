// Where a call's work goes: the device and the stream of the calling thread, and what waits for whom.
#ifndef SNNC_STREAMS_HPP
#define SNNC_STREAMS_HPP

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#if defined(SNNC_ON_HOST)
#include <fstream>
#else
#include <cuda_runtime.h>
#endif

namespace snnc {
namespace device {

#if defined(SNNC_ON_HOST)
using Stream = void *;
#else
using Stream = cudaStream_t;
inline void check(cudaError_t status, const char *what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
#endif

/// What the calling thread starts, it starts in this stream; null is the default stream.
inline Stream &stream() {
  static thread_local Stream current = nullptr;
  return current;
}

#if defined(SNNC_ON_HOST)

/// Writes down what is asked of which stream, where a check wants to know: kernels and copies run at once here.
inline void note(const char *what, Stream in) {
  if (const char *path = std::getenv("SNNC_HOST_STREAMS"))
    std::ofstream(path, std::ios::app) << what << ' ' << reinterpret_cast<std::uintptr_t>(in) << '\n';
}
inline int current() { return 0; }
inline void use(int) {}
inline void finish() { note("wait", stream()); }
inline void finish_all() { note("wait for all", nullptr); }

class Event {
public:
  void record(Stream in) { note("record", in); }
  void wait() {}
  void hold(Stream in) { note("hold", in); }
};

#else

inline int current() {
  int device = 0;
  check(cudaGetDevice(&device), "no current device");
  return device;
}
/// What the calling thread does from here on, it does on that device.
inline void use(int device) { check(cudaSetDevice(device), "no such device"); }
/// Waits for what was started in the stream.
inline void finish() { check(cudaStreamSynchronize(stream()), "a kernel"); }
/// Waits for all that anybody has started on the device.
inline void finish_all() { check(cudaDeviceSynchronize(), "a kernel"); }

/// A place in a stream, which the host or another stream waits for.
class Event {
public:
  Event() { check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  ~Event() { cudaEventDestroy(event); }
  void record(Stream in) { check(cudaEventRecord(event, in), "an event"); }
  /// One that was never recorded is waited for by nobody.
  void wait() { check(cudaEventSynchronize(event), "copy to the device"); }
  cudaEvent_t get() const { return event; }
  void hold(Stream in) { check(cudaStreamWaitEvent(in, event, 0), "an event"); }

private:
  cudaEvent_t event{};
};

#endif

/// A call's device and stream; behind it the thread has its own again.
class Place {
public:
  Place(int device, Stream in) : device_before(current()), stream_before(stream()) {
    use(device);
    stream() = in;
  }
  Place(const Place &) = delete;
  Place &operator=(const Place &) = delete;
  ~Place() {
    stream() = stream_before;
    // The device was there before.
    try {
      use(device_before);
    } catch (const std::exception &) {
    }
  }

private:
  const int device_before;
  const Stream stream_before;
};

} // namespace device
} // namespace snnc

#endif
