// Runs kernels on the CPU, for checks: every CUDA thread is a fiber, which waits for others exactly where a device thread does.
#ifndef SNNC_CUDA_ON_HOST_HPP
#define SNNC_CUDA_ON_HOST_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

namespace snnc {
namespace host {

constexpr unsigned WARP_LANES = 32;
constexpr std::size_t STACK = 128 * 1024;

/// Values that lanes exchange: double-buffered, so that a fast lane never overwrites values that a slow one still reads.
struct WarpState {
  std::uint64_t room[2][WARP_LANES];
  unsigned arrived = 0, generation = 0;
};

/// A barrier of threads.
struct Meeting {
  unsigned arrived = 0, generation = 0;
};

struct BlockState : Meeting {
  std::vector<WarpState> warps;
  std::vector<double> shared;
};

struct Fiber {
  ucontext_t context;
  /// Where it resumes; switches by longjmp need no system calls.
  jmp_buf place;
  bool begun = false;
  std::unique_ptr<char[]> stack;
  unsigned block = 0, thread = 0;
  /// Counter for which it waits: it resumes when the counter has reached `wanted`.
  const volatile unsigned *watched = nullptr;
  unsigned wanted = 0;
  bool ended = true;
};

/// Runs all fibers of a kernel; every operating system thread has its own machine.
class Machine {
public:
  static Machine &here() {
    static thread_local Machine machine;
    return machine;
  }

  /// Runs a kernel. `together`: all blocks concurrently, as in a cooperative launch; otherwise one cluster of blocks after another.
  void run(unsigned blocks, unsigned threads, std::size_t shared, bool together, const std::function<void()> &kernel,
           unsigned cluster = 1) {
    if (threads == 0 || threads % WARP_LANES != 0)
      throw std::logic_error("the threads of a block must be whole warps");
    if (cluster == 0 || blocks % cluster != 0)
      throw std::logic_error("the blocks of a grid must be whole clusters");
    block_threads = threads;
    grid_blocks = blocks;
    cluster_blocks = cluster;
    body = &kernel;
    const unsigned step = together ? blocks : cluster;
    for (unsigned first = 0; first < blocks; first += step)
      run_blocks(first, step, shared);
  }

  Fiber &current() { return *fibers[at]; }
  BlockState &block() { return states[current().block - first_block]; }
  WarpState &warp() { return block().warps[current().thread / WARP_LANES]; }
  unsigned threads() const { return block_threads; }
  unsigned blocks() const { return grid_blocks; }
  unsigned cluster() const { return cluster_blocks; }
  unsigned cluster_rank() { return current().block % cluster_blocks; }
  /// Returns the shared memory of a block of this thread's cluster.
  char *shared_of(unsigned rank) {
    return reinterpret_cast<char *>(states[current().block - first_block - cluster_rank() + rank].shared.data());
  }

  /// Lets other fibers run until the counter has reached `wanted`.
  void wait(const volatile unsigned *counter, unsigned wanted) {
    Fiber &self = current();
    if (static_cast<int>(*counter - wanted) >= 0)
      return;
    self.watched = counter;
    self.wanted = wanted;
    if (_setjmp(self.place) == 0)
      _longjmp(scheduler, 1);
  }

  void sync_block() { meet(block(), block_threads); }
  void sync_cluster() { meet(clusters[(current().block - first_block) / cluster_blocks], cluster_blocks * block_threads); }

  /// Exchanges a value of each lane; returns the values of all lanes.
  const std::uint64_t *exchange(std::uint64_t number) {
    WarpState &own = warp();
    std::uint64_t *room = own.room[own.generation % 2];
    room[current().thread % WARP_LANES] = number;
    const unsigned next = own.generation + 1;
    if (++own.arrived == WARP_LANES) {
      own.arrived = 0;
      own.generation = next;
    }
    wait(&own.generation, next);
    return room;
  }

private:
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<BlockState> states;
  std::vector<Meeting> clusters;
  jmp_buf scheduler;
  const std::function<void()> *body = nullptr;
  std::size_t at = 0;
  unsigned block_threads = 0, grid_blocks = 0, cluster_blocks = 1, first_block = 0;

  void meet(Meeting &with, unsigned threads) {
    const unsigned next = with.generation + 1;
    if (++with.arrived == threads) {
      with.arrived = 0;
      with.generation = next;
    }
    wait(&with.generation, next);
  }

  static void enter() {
    Machine &machine = here();
    (*machine.body)();
    machine.current().ended = true;
    _longjmp(machine.scheduler, 1);
  }

  void run_blocks(unsigned first, unsigned count, std::size_t shared) {
    first_block = first;
    states.assign(count, BlockState());
    clusters.assign(count / cluster_blocks, Meeting());
    for (BlockState &state : states) {
      state.warps.assign(block_threads / WARP_LANES, WarpState());
      state.shared.assign(shared / sizeof(double) + 1, 0.0);
    }
    const std::size_t total = static_cast<std::size_t>(count) * block_threads;
    while (fibers.size() < total) {
      fibers.push_back(std::make_unique<Fiber>());
      fibers.back()->stack.reset(new char[STACK]);
    }
    for (std::size_t i = 0; i < total; ++i)
      start(*fibers[i], first + static_cast<unsigned>(i / block_threads), static_cast<unsigned>(i % block_threads));
    // Results must not depend on the order in which threads run, so a check can also run them in reverse order.
    const char *order = std::getenv("SNNC_HOST_ORDER");
    const bool backwards = order != nullptr && order[0] == 'b';
    for (std::size_t left = total; left > 0;) {
      bool moved = false;
      for (std::size_t i = 0; i < total; ++i)
        moved |= resume(backwards ? total - 1 - i : i, left);
      if (!moved && left > 0) {
        for (std::size_t i = 0; i < total; ++i)
          fibers[i]->ended = true;
        throw std::logic_error("threads of a kernel wait for threads that have ended");
      }
    }
  }

  void start(Fiber &fiber, unsigned block_index, unsigned thread) {
    fiber.block = block_index;
    fiber.thread = thread;
    fiber.watched = nullptr;
    fiber.ended = fiber.begun = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Machine::enter, 0);
  }

  void enter_fiber(Fiber &fiber) {
    if (_setjmp(scheduler) != 0)
      return;
    if (fiber.begun)
      _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
  }

  bool resume(std::size_t index, std::size_t &left) {
    Fiber &fiber = *fibers[index];
    if (fiber.ended || (fiber.watched != nullptr && static_cast<int>(*fiber.watched - fiber.wanted) < 0))
      return false;
    fiber.watched = nullptr;
    at = index;
    enter_fiber(fiber);
    left -= fibers[at]->ended ? 1 : 0;
    return true;
  }
};

} // namespace host
} // namespace snnc

#endif
