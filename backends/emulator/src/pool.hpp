// Threads that sleep between the compute sets they share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace poplar::core {

class Pool {
public:
  /// A piece of work: chunk number, thread number.
  using Work = void (*)(void *context, std::uint32_t chunk, unsigned thread);

  explicit Pool(unsigned threads) : threads_(threads) {}
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  unsigned threads() const { return threads_; }
  /// Runs all chunks and returns when they are done; the caller works too. Throws what the first chunk threw that failed.
  void run(Work work, void *context, std::uint32_t chunks);

  /// SNNC_THREADS, otherwise the number of cores of this machine.
  static unsigned defaultThreads();

private:
  void start();
  void loop(unsigned thread);
  void takeChunks(unsigned thread);

  const unsigned threads_;
  std::vector<std::thread> helpers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::uint64_t round_ = 0;
  unsigned busy_ = 0;
  bool stop_ = false;
  Work work_ = nullptr;
  void *context_ = nullptr;
  std::uint32_t chunks_ = 0;
  std::atomic<std::uint32_t> next_{0};
  std::exception_ptr failure_;
};

} // namespace poplar::core
