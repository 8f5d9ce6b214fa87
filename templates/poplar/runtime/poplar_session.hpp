// A session on a Poplar engine: named tensors, streams of inputs, programs. host.cpp defines the network.
#ifndef SNNC_POPLAR_SESSION_HPP
#define SNNC_POPLAR_SESSION_HPP

#include "layout.hpp"
#include "snnc_session.hpp"
#include "snnc_targets.hpp"
#include "vertices.hpp"

#include <poplar/Device.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Program.hpp>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace snnc {

struct Wire {
  unsigned from, to;
  double bytes_per_second;
};

/// The machine for which the plan was made; only the emulator uses the members after `workers`.
struct Machine {
  const char *version;
  unsigned ipus, tiles_per_ipu, bytes_per_tile;
  double clock_hz;
  unsigned workers;
  double exchange_bytes_per_cycle, fragment_cycles;
  unsigned fragment_code_bytes, control_code_bytes, stack_bytes;
  double sync_cycles, link_sync_cycles, setup_cycles, control_cycles, host_bytes_per_second, vertex_start_cycles,
      streaming_bytes_per_second;
  std::uint64_t streaming_bytes;
  std::vector<Wire> wires;
};

/// The segment that a stream sends: from the first to the last, then back to the first if segments run again. Each run of a program starts over.
struct Turns {
  int segment, segments, interval;
  std::vector<std::shared_ptr<int>> counts;

  std::shared_ptr<int> begin();
  void again();
  int of(int turn) const;
};

/// The slots in which relays store the steps of an input that a segment reads; `turns` is empty if they store all steps.
struct Ring {
  std::size_t slots = 0;
  /// A step is last read in iteration interval * step + offset.
  int offset = 0;
  Turns *turns = nullptr;

  /// Returns the first step that a segment reads.
  std::size_t first(int of) const;
};

template <class Number> struct Kept;

/// Dimensions as braces in a call, which need no code to destroy them.
using Dims = std::initializer_list<std::size_t>;

/// TRAIN contains the update, except in a network with statistics of a batch: there, AGAIN repeats the backward pass, CHANGE updates, and
/// MEASURE runs forward and computes the statistics.
enum Programs : unsigned { REFRESH, FORWARD, TRAIN, AGAIN, CHANGE, MEASURE };

/// Values of the setting `gather`: the programs that a run or a training step runs.
enum Gather : std::int32_t { ALONE, BEGINS, GOES_ON, CHANGES, REPEATS, MEASURES };

class PoplarSession : public Session {
public:
  ~PoplarSession() override;

  const std::vector<TensorInfo> &tensors() const override;
  void set(std::size_t index, const void *data) override;
  void get(std::size_t index, void *data) override;

  void run() override;
  float train_step() override;
  std::string profile() override;
  void save(const std::string &path) override;

protected:
  PoplarSession(const std::string &project, const Machine &machine, unsigned samples, bool trains);

  /// Adds a tensor that the host reads and, if `writable`, writes.
  void tensor(const char *name, snnc_role role, Dims shape, const poplar::Tensor &on_device, Order order,
              bool writable, snnc_type type = SNNC_FLOAT32);

  /// Adds the setting `gather`, for a network whose update is a program of its own.
  void add_passes();

  /// Adds a parameter of which no tile has a copy, so that a new value is valid without running REFRESH.
  void parameter_of_blocks(const char *name, Dims shape, const poplar::Tensor &on_device, Order order);

  /// Sets the initial value of a setting with one element.
  void begins(const char *name, float value) { first_numbers.emplace_back(name, value); }

  /// Adds a parameter that tiles store as half; the host sees floats, rounded to the nearest half value.
  void half_parameter(const char *name, Dims shape, const poplar::Tensor &on_device, Order order);

  /// Adds initial values of states that tiles store as half; the host sees floats.
  void half_state(const char *name, Dims shape, const poplar::Tensor &on_device, Order order);

  /// Adds counts in relays, exposed as their sum; setting it (to 0) resets them.
  void counter(const char *name, const poplar::Tensor &counts);

  /// Adds an input that is stored as lists of events: dense 0/1 numbers become ids and counts.
  template <class Id> void event_input(const char *name, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays,
                                       const Parts &ids, const Parts &numbers, std::size_t stored_ids, const Ring &ring,
                                       poplar::program::Sequence &load);

  /// Adds an input of dense 0/1 numbers that is stored as one bit per value, with the first value in the highest bit of a word.
  void bit_input(const char *name, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays, const Parts &bits,
                 const Ring &ring, poplar::program::Sequence &load);

  /// Adds an initial value in slot 0 of lists of bits: [batch][n] of 0 and 1.
  void initial_bits(const char *name, std::size_t samples, std::size_t width, const std::vector<Relay> &relays, const Parts &bits,
                    std::size_t slots);

  /// Adds an input that is stored as values.
  void value_input(const char *name, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays, const Parts &values,
                   const Ring &ring, poplar::program::Sequence &load);

  void label_input(const poplar::Tensor &labels, int classes, poplar::program::Sequence &load);

  /// Adds targets other than one class per sample, sample by sample.
  void target_input(const poplar::Tensor &targets, const TargetForm &form, std::size_t steps, poplar::program::Sequence &load);

  /// Adds the gradient of a record, for a loss that the host computes.
  void adjoint_input(const char *name, Dims shape, const poplar::Tensor &on_device, const Order &order,
                     poplar::program::Sequence &load);

  /// Adds an initial value in slot 0 of event lists: [batch][n] of 0 and 1.
  template <class Id> void initial_events(const char *name, std::size_t batch, std::size_t width, const std::vector<Relay> &relays,
                                          const Parts &ids, const Parts &numbers, std::size_t slots, std::size_t stored_ids);

  /// Compiles and loads the programs, then writes zeros and the stored weights.
  void load(const std::vector<poplar::program::Program> &programs, std::initializer_list<Stored> offsets);

  /// Creates one element per sample, on the tiles of a table.
  poplar::Tensor spread_samples(const poplar::Type &type, const char *name, const Table &tiles);

  poplar::Tensor constant(int value);

  std::string folder;
  bool training;
  poplar::Device device;
  poplar::Graph graph;
  Layout layout;

private:
  struct Access {
    std::function<void(const void *)> set;
    std::function<void(void *)> get;
  };
  struct Connected {
    std::string handle;
    void *begin;
    void *end;
  };

  std::unique_ptr<poplar::Engine> engine;
  std::vector<TensorInfo> infos;
  std::vector<Access> accesses;
  std::vector<Connected> streams;
  std::vector<std::pair<std::string, std::function<void(void *)>>> filled;
  Turns *turns = nullptr;
  std::vector<std::size_t> zero_at_open;
  /// Initial values of tensors with one element.
  std::vector<std::pair<std::string, float>> first_numbers;
  std::vector<Stored> stored;
  bool stale = true, passes = false;
  std::int32_t gather = ALONE;
  unsigned forward_runs = 0, train_runs = 0;
  double seconds = 0, build_seconds = 0;

  void add(TensorInfo info, std::function<void(const void *)> set, std::function<void(void *)> get);

  /// Adds floats that tiles store as half.
  void halves(TensorInfo info, const poplar::Tensor &on_device, Order order);

  /// Adds an input, which cannot be read back.
  void add_input(const std::string &name, std::vector<std::size_t> shape, std::function<void(const void *)> set);

  void stream(const std::string &handle, const poplar::Tensor &to, poplar::program::Sequence &load);

  /// Adds the stream of an input: all steps at once, or one segment at a time.
  template <class Number> void stream(const std::string &handle, const Parts &to, const std::shared_ptr<Kept<Number>> &kept,
                                      const Ring &ring, poplar::program::Sequence &load);

  static std::size_t words_of_bits(std::size_t width);

  static void put_bits(const std::string &name, const float *row, std::size_t width, std::uint32_t *words);

  void refresh();

  void timed(unsigned program);

  static double elapsed(std::chrono::steady_clock::time_point start);
};

} // namespace snnc

#endif
