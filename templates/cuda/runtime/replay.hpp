// Repeated launches of a training step, recorded as a CUDA graph, which starts them together, with shorter gaps.
#ifndef SNNC_REPLAY_HPP
#define SNNC_REPLAY_HPP

#include "uploads.hpp"

#include <cstddef>
#include <vector>

namespace snnc {
namespace device {

#if defined(SNNC_ON_HOST)

class Replay {
public:
  template <class Work> void run(const std::vector<std::size_t> &, const Work &work) { work(); }
};

#else

/// Runs work that consists of kernels, clears and copies on the device, without waiting and allocating.
class Replay {
public:
  Replay() = default;
  Replay(const Replay &) = delete;
  Replay &operator=(const Replay &) = delete;
  ~Replay() { forget(); }

  /// Runs `work` or, for a `key` that has been recorded, replays the launches of that time.
  template <class Work> void run(const std::vector<std::size_t> &key, const Work &work) {
    if (key != last) {
      forget();
      last = key;
    } else if (graph == nullptr && works && !is_recording()) {
      record(work);
    }
    if (graph == nullptr)
      return work();
    check(cudaGraphLaunch(graph, stream()), "launch");
  }

private:
  /// Whether the caller is already recording the stream: graphs cannot be launched in a recording.
  static bool is_recording() {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream(), &status) != cudaSuccess || status != cudaStreamCaptureStatusNone;
  }

  template <class Work> void record(const Work &work) {
    cudaGraph_t recorded = nullptr;
    const Stream before = stream();
    works = cudaStreamBeginCapture(own.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    if (works) {
      stream() = own.get();
      try {
        work();
      } catch (const std::exception &) {
        works = false;
      }
      stream() = before;
      works = cudaStreamEndCapture(own.get(), &recorded) == cudaSuccess && works;
    }
    works = works && cudaGraphInstantiateWithFlags(&graph, recorded, 0) == cudaSuccess;
    if (recorded != nullptr)
      cudaGraphDestroy(recorded);
    // If recording fails, the launches are made one by one; none of them has run yet.
    if (!works) {
      graph = nullptr;
      cudaGetLastError();
    }
  }

  void forget() {
    if (graph != nullptr)
      cudaGraphExecDestroy(graph);
    graph = nullptr;
  }

  OwnStream own;
  std::vector<std::size_t> last;
  cudaGraphExec_t graph = nullptr;
  bool works = true;
};

#endif

} // namespace device
} // namespace snnc

#endif
