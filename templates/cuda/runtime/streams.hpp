// The device and stream of the calling thread, and synchronisation of streams.
#ifndef SNNC_STREAMS_HPP
#define SNNC_STREAMS_HPP

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#if !defined(SNNC_ON_HOST)
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

/// The stream in which the calling thread starts work; null is the default stream.
inline Stream &stream() {
  static thread_local Stream current = nullptr;
  return current;
}

#if defined(SNNC_ON_HOST)

/// Records an operation on a stream, if a check requests it; here, kernels and copies run immediately.
void note(const char *what, Stream in);
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
  check(cudaGetDevice(&device), "the current device");
  return device;
}
/// Makes a device the current one of the calling thread.
inline void use(int device) { check(cudaSetDevice(device), "selection of a device"); }
/// Waits for all work in the current stream.
inline void finish() { check(cudaStreamSynchronize(stream()), "a kernel"); }
/// Waits for all work on the device.
inline void finish_all() { check(cudaDeviceSynchronize(), "a kernel"); }

/// An event in a stream, for which the host or another stream can wait.
class Event {
public:
  Event() { check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  ~Event() { cudaEventDestroy(event); }
  void record(Stream in) { check(cudaEventRecord(event, in), "an event"); }
  /// Waits on the host; returns at once if the event was never recorded.
  void wait() { check(cudaEventSynchronize(event), "copy to the device"); }
  cudaEvent_t get() const { return event; }
  void hold(Stream in) { check(cudaStreamWaitEvent(in, event, 0), "an event"); }

private:
  cudaEvent_t event{};
};

#endif

/// Sets the device and stream of a call; the destructor restores those of the thread.
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
    // The device existed before, so this cannot fail.
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
