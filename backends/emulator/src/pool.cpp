#include "pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace poplar::core {

unsigned Pool::defaultThreads() {
  if (const char *text = std::getenv("SNNC_THREADS"))
    return unsigned(std::max(1, std::atoi(text)));
  return std::max(1u, std::thread::hardware_concurrency());
}

Pool::~Pool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread &t : helpers_)
    t.join();
}

void Pool::start() {
  for (unsigned i = 1; i < threads_; ++i)
    helpers_.emplace_back([this, i] { loop(i); });
}

void Pool::takeChunks(unsigned thread) {
  for (std::uint32_t chunk; (chunk = next_.fetch_add(1, std::memory_order_relaxed)) < chunks_;)
    try {
      work_(context_, chunk, thread);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_)
        failure_ = std::current_exception();
    }
}

void Pool::loop(unsigned thread) {
  std::uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_)
      return;
    seen = round_;
    lock.unlock();
    takeChunks(thread);
    lock.lock();
    if (--busy_ == 0)
      done_.notify_one();
  }
}

void Pool::run(Work work, void *context, std::uint32_t chunks) {
  if (helpers_.empty())
    start();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_ = work;
    context_ = context;
    chunks_ = chunks;
    next_.store(0, std::memory_order_relaxed);
    busy_ = unsigned(helpers_.size());
    ++round_;
  }
  wake_.notify_all();
  takeChunks(0);
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
  if (failure_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

} // namespace poplar::core
