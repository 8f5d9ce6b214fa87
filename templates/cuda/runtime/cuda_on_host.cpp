// Runs kernels on the host, for checks: one fiber for each thread; memory of the device is memory of the host.
#include "cuda_on_host.hpp"

#include "memory.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

namespace snnc {
namespace host {

namespace {

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

/// Asynchronous work that has not been done.
struct Deferred {
  void (*work)(const void *of);
  unsigned group;
  alignas(8) unsigned char of[MAX_WORK];

  Deferred(void (*given)(const void *), const void *from, std::size_t bytes, unsigned number) : work(given), group(number) {
    std::memcpy(of, from, bytes);
  }
  void run() const { work(of); }
};

/// The asynchronous work of a thread of one kind, in the order in which it was started.
struct Queue {
  std::vector<Deferred> waiting;
  unsigned ended = 0;

  void finish(unsigned later) {
    std::size_t done = 0;
    while (done < waiting.size() && waiting[done].group + later < ended)
      waiting[done++].run();
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(done));
  }
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
  /// Whether only the lowest bit of the counter is compared.
  bool parity = false;
  bool ended = true;
  Queue queues[2];

  bool reached() const { return parity ? ((*watched ^ wanted) & 1u) == 0 : static_cast<int>(*watched - wanted) >= 0; }
};

/// The grid that runs, and the running thread. Kept outside the machine, so that they can be read without checking that it exists.
thread_local Grid grid{};
thread_local unsigned running_thread = 0, running_block = 0;

/// Runs all fibers of a kernel; every operating system thread has its own machine.
class Machine {
public:
  /// The machine of the running grid.
  static thread_local Machine *running;

  void run(const Grid &given, void (*kernel)(const void *of), const void *of) {
    if (given.threads == 0 || given.threads % WARP_LANES != 0)
      throw std::logic_error("the threads of a block must be whole warps");
    if (given.cluster == 0 || given.blocks % given.cluster != 0)
      throw std::logic_error("the blocks of a grid must be whole clusters");
    grid = given;
    body = kernel;
    arguments = of;
    running = this;
    const char *order = std::getenv("SNNC_HOST_ORDER");
    backwards = order != nullptr && order[0] == 'b';
    const unsigned step = grid.together ? grid.blocks : grid.cluster;
    for (unsigned first = 0; first < grid.blocks; first += step)
      run_blocks(first, step);
  }

  BlockState &block() { return states[running_block - first_block]; }
  WarpState &warp() { return block().warps[running_thread / WARP_LANES]; }
  BlockState &block_of(unsigned rank) { return states[running_block - first_block - running_block % grid.cluster + rank]; }

  void wait(const volatile unsigned *counter, unsigned wanted, bool parity = false) {
    Fiber &self = *fibers[at];
    self.watched = counter;
    self.wanted = wanted;
    self.parity = parity;
    if (self.reached())
      self.watched = nullptr;
    else if (_setjmp(self.place) == 0)
      _longjmp(scheduler, 1);
  }
  Queue &queue(Pending kind) { return fibers[at]->queues[static_cast<int>(kind)]; }
  void send(const Deferred &message) {
    if (backwards)
      messages.push_back(message);
    else
      message.run();
  }
  bool is_late() const { return backwards; }

  void meet(Meeting &with, unsigned threads) {
    const unsigned next = with.generation + 1;
    if (++with.arrived == threads) {
      with.arrived = 0;
      with.generation = next;
    }
    wait(&with.generation, next);
  }
  void sync_block() { meet(block(), grid.threads); }
  void sync_cluster() { meet(clusters[(running_block - first_block) / grid.cluster], grid.cluster * grid.threads); }

  const std::uint64_t *exchange(std::uint64_t number) {
    WarpState &own = warp();
    std::uint64_t *room = own.room[own.generation % 2];
    room[running_thread % WARP_LANES] = number;
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
  void (*body)(const void *of) = nullptr;
  const void *arguments = nullptr;
  std::size_t at = 0;
  unsigned first_block = 0;
  bool backwards = false;
  /// Work of which other blocks learn.
  std::vector<Deferred> messages;

  static void enter() {
    Machine &machine = *running;
    machine.body(machine.arguments);
    machine.fibers[machine.at]->ended = true;
    _longjmp(machine.scheduler, 1);
  }

  void run_blocks(unsigned first, unsigned count) {
    first_block = first;
    states.assign(count, BlockState());
    clusters.assign(count / grid.cluster, Meeting());
    for (BlockState &state : states) {
      state.warps.assign(grid.threads / WARP_LANES, WarpState());
      state.shared.resize(grid.shared / sizeof(double) + 1);
      std::memset(state.shared.data(), 0xff, state.shared.size() * sizeof(double));
    }
    messages.clear();
    const std::size_t total = static_cast<std::size_t>(count) * grid.threads;
    while (fibers.size() < total) {
      fibers.push_back(std::make_unique<Fiber>());
      fibers.back()->stack.reset(new char[STACK]);
    }
    for (std::size_t i = 0; i < total; ++i)
      start(*fibers[i], first + static_cast<unsigned>(i / grid.threads), static_cast<unsigned>(i % grid.threads));
    // Results must not depend on the order in which threads run, so a check can also run them in reverse order.
    for (std::size_t left = total; left > 0;) {
      bool moved = false;
      for (std::size_t i = 0; i < total; ++i)
        moved |= resume(backwards ? total - 1 - i : i, left);
      if (!moved && left > 0 && !deliver()) {
        for (std::size_t i = 0; i < total; ++i)
          fibers[i]->ended = true;
        throw std::logic_error("threads of a kernel wait for threads that have ended");
      }
    }
    if (!messages.empty())
      throw std::logic_error("words are sent to a block that has ended");
  }

  /// Does the work that was sent, the last first; false if there is none.
  bool deliver() {
    const std::vector<Deferred> sent(messages.rbegin(), messages.rend());
    messages.clear();
    for (const Deferred &message : sent)
      message.run();
    return !sent.empty();
  }

  void start(Fiber &fiber, unsigned block_index, unsigned thread) {
    fiber.block = block_index;
    fiber.thread = thread;
    fiber.watched = nullptr;
    fiber.ended = fiber.begun = false;
    for (Queue &queue : fiber.queues)
      queue = Queue();
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
    if (fiber.ended || (fiber.watched != nullptr && !fiber.reached()))
      return false;
    fiber.watched = nullptr;
    at = index;
    running_block = fiber.block;
    running_thread = fiber.thread;
    enter_fiber(fiber);
    left -= fibers[at]->ended ? 1 : 0;
    return true;
  }
};

thread_local Machine *Machine::running = nullptr;

} // namespace

void run_all(const Grid &given, void (*kernel)(const void *of), const void *of) {
  static thread_local Machine machine;
  machine.run(given, kernel, of);
}

unsigned thread() { return running_thread; }
unsigned block() { return running_block; }
unsigned cluster_rank() { return running_block % grid.cluster; }
unsigned threads() { return grid.threads; }
unsigned blocks() { return grid.blocks; }
char *shared() { return reinterpret_cast<char *>(Machine::running->block().shared.data()); }
char *shared_of(unsigned rank) { return reinterpret_cast<char *>(Machine::running->block_of(rank).shared.data()); }

void wait(const volatile unsigned *counter, unsigned wanted) { Machine::running->wait(counter, wanted); }
void wait_for_parity(const volatile unsigned *ended, unsigned phase) { Machine::running->wait(ended, phase + 1, true); }
void sync_block() { Machine::running->sync_block(); }
void sync_cluster() { Machine::running->sync_cluster(); }
const std::uint64_t *exchange(std::uint64_t number) { return Machine::running->exchange(number); }

void start(Pending kind, void (*work)(const void *), const void *of, std::size_t bytes) {
  Machine &machine = *Machine::running;
  if (!machine.is_late())
    return work(of);
  Queue &queue = machine.queue(kind);
  queue.waiting.emplace_back(work, of, bytes, queue.ended);
}
void end_group(Pending kind) { ++Machine::running->queue(kind).ended; }
void wait_for_groups(Pending kind, unsigned later) { Machine::running->queue(kind).finish(later); }
void send(void (*work)(const void *), const void *of, std::size_t bytes) { Machine::running->send(Deferred(work, of, bytes, 0)); }

} // namespace host

namespace device {

void note(const char *what, Stream in) {
  if (const char *path = std::getenv("SNNC_HOST_STREAMS"))
    std::ofstream(path, std::ios::app) << what << ' ' << reinterpret_cast<std::uintptr_t>(in) << '\n';
}

void *take(std::size_t bytes) {
  void *found = std::malloc(bytes);
  if (found == nullptr)
    throw std::runtime_error("out of memory: " + std::to_string(bytes) + " bytes were requested");
  return found;
}

} // namespace device
} // namespace snnc
