#include "executor.hpp"

#include <poplar/exceptions.hpp>

#include "bounds.hpp"
#include "workers.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>

#define SNNC_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
extern "C" {
SNNC_THREAD_LOCAL unsigned long long snnc_worker_cycles = 0;
SNNC_THREAD_LOCAL unsigned snnc_tile_id = 0;
SNNC_THREAD_LOCAL unsigned snnc_worker_id = 0;
SNNC_THREAD_LOCAL unsigned long long *snnc_random_states = nullptr;
}
#undef SNNC_THREAD_LOCAL

/// Called instead of an instruction that only an IPU has (popc).
extern "C" [[noreturn]] void snnc_refuse(const char *instruction) {
  throw poplar::application_runtime_error("a vertex on tile " + std::to_string(snnc_tile_id) + " reached an instruction that the emulator cannot run: " +
                                          instruction);
}

namespace poplar::core {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double defaultThreshold = 250e-6;

double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double chosenThreshold() {
  const char *text = std::getenv("SNNC_PARALLEL_MICROSECONDS");
  return text ? std::atof(text) * 1e-6 : defaultThreshold;
}

void gatherEdge(const StagedEdge &edge, const Strip *strips, char *scratch) {
  for (std::uint32_t i = 0; i < edge.numStrips; ++i) {
    const Strip &s = strips[i];
    runMove({scratch, s.base, s.n0, s.n1, 1, Index(s.n0), s.s0, s.s1}, edge.elementBytes);
    scratch += std::size_t(s.n0) * s.n1 * edge.elementBytes;
  }
}

void scatterEdge(const StagedEdge &edge, const Strip *strips, const char *scratch) {
  for (std::uint32_t i = 0; i < edge.numStrips; ++i) {
    const Strip &s = strips[i];
    runMove({s.base, scratch, s.n0, s.n1, s.s0, s.s1, 1, Index(s.n0)}, edge.elementBytes);
    scratch += std::size_t(s.n0) * s.n1 * edge.elementBytes;
  }
}

/// All six workers of a tile in turn; the cycles are those of the slowest.
std::uint64_t callMulti(const Superstep &step, const VertexCall &call, unsigned workers, bool apart) {
  const auto compute = reinterpret_cast<void (*)(void *, unsigned)>(reinterpret_cast<void *>(call.compute));
  std::uint64_t slowest = 0;
  const auto run = [&](unsigned worker) {
    snnc_worker_cycles = 0;
    snnc_worker_id = worker;
    compute(call.state, worker);
    slowest = std::max<std::uint64_t>(slowest, snnc_worker_cycles);
  };
  if (apart) {
    // Every worker runs twice, with the same random numbers.
    const std::vector<unsigned long long> randoms(snnc_random_states, snnc_random_states + workers);
    runApart(step, call, workers, [&](unsigned worker) {
      snnc_random_states[worker] = randoms[worker];
      run(worker);
    });
  }
  else
    for (unsigned worker = 0; worker < workers; ++worker)
      run(worker);
  return slowest;
}

} // namespace

Executor::Executor(const Target &target)
    : workers_(target.getNumWorkerContexts()), supervisorCycles_(target.getEmulatorModel().supervisorCycles),
      startCycles_(std::uint64_t(target.getEmulatorModel().vertexStartCycles)),
      threshold_(chosenThreshold()), apart_(checksWorkers()), guarded_(checksBounds()), pool_(Pool::defaultThreads()), threads_(pool_.threads()) {
  randoms_.resize(std::size_t(target.getNumTiles()) * workers_);
  // Each worker of each tile has its own random sequence, regardless of the thread that runs it.
  for (std::size_t i = 0; i < randoms_.size(); ++i)
    randoms_[i] = (i + 1) * 0xd1342543de82ef95u;
}

inline void Executor::enterTile(std::uint32_t tile) {
  snnc_tile_id = tile;
  snnc_random_states = randoms_.data() + std::size_t(tile) * workers_;
}

inline std::uint64_t Executor::cyclesOf(const VertexCall &call, std::uint64_t counted, Thread &thread) const {
  if (counted)
    return counted + startCycles_;
  if (call.guess != noGuess)
    thread.guessed[call.guess] = 1;
  return call.cycles;
}

double Executor::busiestWorker(Thread &thread) const {
  std::vector<std::uint64_t> &cycles = thread.workerCycles;
  if (cycles.empty())
    return 0;
  const auto [low, high] = std::minmax_element(cycles.begin(), cycles.end());
  if (cycles.size() <= workers_)
    return double(*high);
  if (*low == *high)
    return double((cycles.size() + workers_ - 1) / workers_ * *high);
  std::sort(cycles.begin(), cycles.end(), std::greater<>());
  std::vector<std::uint64_t> &load = thread.load;
  std::fill(load.begin(), load.end(), 0);
  for (std::uint64_t c : cycles)
    *std::min_element(load.begin(), load.end()) += c;
  return double(*std::max_element(load.begin(), load.end()));
}

/// One vertex, or as many as there are workers, whose edges need no staging: only the calls.
inline double Executor::runPlain(const Superstep &step, const TileGroup &group, Thread &thread) {
  const VertexCall *call = step.calls.data() + group.firstCall;
  std::uint64_t slowest = 0;
  enterTile(group.tile);
  for (std::uint32_t worker = 0; worker < group.numCalls; ++worker, ++call) {
    snnc_worker_cycles = 0;
    snnc_worker_id = worker;
    call->compute(call->state);
    slowest = std::max(slowest, cyclesOf(*call, snnc_worker_cycles, thread));
  }
  return double(workers_ * slowest);
}

double Executor::runGroup(const Superstep &step, const TileGroup &group, Thread &thread) {
  char *const scratch = thread.scratch.data();
  thread.workerCycles.clear();
  enterTile(group.tile);
  unsigned worker = 0;
  double serial = 0;
  for (std::uint32_t c = group.firstCall; c < group.firstCall + group.numCalls; ++c) {
    const VertexCall &call = step.calls[c];
    const StagedEdge *const first = step.staged.data() + call.firstStaged, *const last = first + call.numStaged;
    for (const StagedEdge *edge = first; edge != last; ++edge) {
      *edge->slot = scratch + edge->scratchOffset;
      gatherEdge(*edge, &step.strips[edge->firstStrip], scratch + edge->scratchOffset);
    }
    if (guarded_)
      setGuards(step, call, scratch, thread.sums);
    if (call.multi) {
      const std::uint64_t counted = callMulti(step, call, workers_, apart_);
      serial += counted ? double(workers_ * (counted + startCycles_)) + supervisorCycles_ : double(cyclesOf(call, 0, thread));
    } else if (call.wholeTile) {
      snnc_worker_cycles = 0;
      call.compute(call.state);
      serial += double(cyclesOf(call, snnc_worker_cycles, thread));
    } else {
      snnc_worker_cycles = 0;
      snnc_worker_id = worker;
      worker = worker + 1 == workers_ ? 0 : worker + 1;
      call.compute(call.state);
      thread.workerCycles.push_back(cyclesOf(call, snnc_worker_cycles, thread));
    }
    if (guarded_)
      checkGuards(step, call, scratch, thread.sums);
    for (const StagedEdge *edge = first; edge != last; ++edge)
      if (edge->writes)
        scatterEdge(*edge, &step.strips[edge->firstStrip], scratch + edge->scratchOffset);
  }
  return serial + workers_ * busiestWorker(thread);
}

void Executor::runGroups(Superstep &step, std::uint32_t begin, std::uint32_t end, Thread &thread) {
  for (std::uint32_t g = begin; g < end; ++g) {
    const TileGroup &group = step.groups[g];
    const double cycles = step.plain && group.numCalls <= workers_ ? runPlain(step, group, thread) : runGroup(step, group, thread);
    step.groupCycles[g] += cycles;
    thread.sum += cycles;
    thread.busiest = std::max(thread.busiest, cycles);
  }
}

void Executor::work(void *context, std::uint32_t chunk, unsigned number) {
  const Job &job = *static_cast<Job *>(context);
  Thread &thread = job.executor->threads_[number];
  const std::uint64_t groups = job.step->groups.size();
  const Clock::time_point begin = Clock::now();
  job.executor->runGroups(*job.step, std::uint32_t(groups * chunk / job.chunks), std::uint32_t(groups * (chunk + 1) / job.chunks), thread);
  thread.seconds += secondsSince(begin);
}

void Executor::reserve(const Superstep &step) {
  std::size_t most = 0;
  for (const TileGroup &group : step.groups)
    most = std::max<std::size_t>(most, group.numCalls);
  for (Thread &t : threads_) {
    if (t.scratch.size() < step.scratchBytes + 2 * guardBytes)
      t.scratch = AlignedBytes(step.scratchBytes + 2 * guardBytes);
    t.workerCycles.reserve(most);
    t.load.resize(workers_);
    t.guessed.resize(std::max(t.guessed.size(), step.guessed.size()));
  }
}

double Executor::run(Superstep &step) {
  for (Thread &t : threads_) {
    t.busiest = t.sum = t.seconds = 0;
    std::fill(t.guessed.begin(), t.guessed.end(), 0);
  }
  const Clock::time_point begin = Clock::now();
  const bool share = !apart_ && !guarded_ && threads_.size() > 1 && step.groups.size() > 1 && step.serialSeconds > threshold_;
  if (share) {
    Job job{this, &step, std::uint32_t(std::min<std::size_t>(step.groups.size(), threads_.size() * 8))};
    pool_.run(&Executor::work, &job, job.chunks);
  } else {
    runGroups(step, 0, std::uint32_t(step.groups.size()), threads_[0]);
  }
  const double elapsed = secondsSince(begin);
  double busiest = 0, sum = 0, seconds = 0;
  for (const Thread &t : threads_) {
    busiest = std::max(busiest, t.busiest);
    sum += t.sum;
    seconds += t.seconds;
    for (std::size_t i = 0; i < step.guessed.size(); ++i)
      step.guessed[i] |= t.guessed[i];
  }
  step.serialSeconds = share ? seconds : elapsed;
  step.hostSeconds += elapsed;
  step.busiestCycles += busiest;
  step.sumCycles += sum;
  ++step.executions;
  return busiest;
}

} // namespace poplar::core
