#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

namespace snnc {

namespace {

/// Number of checks of a condition before a thread sleeps: some tens of microseconds, the time between two regions of a step. Longer
/// waits would keep cores from other programs.
constexpr int LOOKS = 1000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A region of work: thread `hand` makes the calls hand, hand + hands, and so on.
struct Region {
  void (*call)(const void *work, int index);
  const void *work;
  int count, hands;
  std::vector<std::exception_ptr> failed;

  void share(int hand) {
    for (int index = hand; index < count; index += hands)
      try {
        call(work, index);
      } catch (...) {
        failed[static_cast<std::size_t>(index)] = std::current_exception();
      }
  }
};

} // namespace

int processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return CPU_COUNT(&set);
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

struct Pool::State {
  std::mutex mutex;
  std::condition_variable begun, done;
  std::atomic<unsigned> round{0};
  std::atomic<std::size_t> busy{0};
  /// Null: threads exit.
  Region *region = nullptr;
  std::vector<std::thread> others;
  const pid_t process = getpid();

  template <class Condition> void wait(std::condition_variable &changed, const Condition &condition) {
    for (int look = 0; look < LOOKS; ++look, pause())
      if (condition())
        return;
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, condition);
  }

  void begin(Region *next) {
    region = next;
    busy.store(others.size(), std::memory_order_relaxed);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      round.fetch_add(1, std::memory_order_release);
    }
    begun.notify_all();
  }

  void finish() {
    wait(done, [this] { return busy.load(std::memory_order_acquire) == 0; });
  }

  void serve(int hand, unsigned seen) {
    for (;; ++seen) {
      wait(begun, [this, seen] { return round.load(std::memory_order_acquire) != seen; });
      if (region == nullptr)
        return;
      region->share(hand);
      if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const std::lock_guard<std::mutex> lock(mutex);
        done.notify_one();
      }
    }
  }
};

void Pool::run_all(int count, Call call, const void *work) {
  have(count - 1);
  Region region{call, work, count, static_cast<int>(state->others.size()) + 1,
                std::vector<std::exception_ptr>(static_cast<std::size_t>(count))};
  state->begin(&region);
  region.share(0);
  state->finish();
  for (const std::exception_ptr &failure : region.failed)
    if (failure)
      std::rethrow_exception(failure);
}

/// Starts threads until there are `wanted`; if the system allows fewer, these share the work.
void Pool::have(int wanted) {
  // A forked process has the memory of its parent but not its threads, so their objects are left alone.
  if (state != nullptr && state->process != getpid())
    state = nullptr;
  if (state == nullptr)
    state = new State();
  while (static_cast<int>(state->others.size()) < wanted) {
    const int hand = static_cast<int>(state->others.size()) + 1;
    const unsigned seen = state->round.load(std::memory_order_relaxed);
    try {
      state->others.emplace_back([own = state, hand, seen] { own->serve(hand, seen); });
    } catch (const std::system_error &) {
      return;
    }
  }
}

void Pool::end() {
  if (state != nullptr && state->process == getpid()) {
    state->begin(nullptr);
    for (std::thread &other : state->others)
      other.join();
    delete state;
  }
  state = nullptr;
}

} // namespace snnc
