// A session on the device: named tensors, any number of steps and samples. network.cpp defines the network.
#ifndef SNNC_CUDA_SESSION_HPP
#define SNNC_CUDA_SESSION_HPP

#include "beside.hpp"
#include "constants.hpp"
#include "native_session.hpp"
#include "replay.hpp"
#include "session_kernels.hpp"
#include "timing.hpp"
#include "uploads.hpp"

#include <algorithm>
#include <initializer_list>
#include <memory>

namespace snnc {

/// Element type of a buffer: float32, 16-bit numbers, or one bit per value.
enum class Form { NUMBERS, HALVES, SPIKES };

/// A buffer of rows [slot][sample], for the whole sequence or for a segment.
struct Held {
  Held(std::size_t values, int steps_before, Form form, bool whole_sequence)
      : size(values), words(form == Form::SPIKES   ? (values + 31) / 32
                            : form == Form::HALVES ? (values + 1) / 2
                                                   : values),
        past(steps_before), bits(form == Form::SPIKES), whole(whole_sequence) {}

  ~Held();

  const std::size_t size, words;
  const int past;
  const bool bits, whole;
  int slots = 0, batch = 0;
  device::Array<std::uint32_t> data;

  void resize(int kept, int samples) {
    slots = kept;
    batch = samples;
    data.resize(static_cast<std::size_t>(kept) * row_words());
  }
  /// Number of words of all samples at a step.
  std::size_t row_words() const { return static_cast<std::size_t>(batch) * words; }
  std::uint32_t *step(int t) const { return data.data() + static_cast<std::size_t>((t + past) % slots) * row_words(); }
  /// Number of slots before a segment that a checkpoint stores.
  int kept() const { return whole ? 0 : slots == 1 ? 1 : past; }
  /// Sets the view that kernels use in the segment that begins with step `first`.
  template <class Kind> void view(Kind &kind, int first) const {
    kind.data = reinterpret_cast<decltype(kind.data)>(data.data());
    kind.slots.slots = slots;
    kind.slots.batch = batch;
    kind.slots.shift = whole ? first : 0;
  }
};

/// A parameter; a dense weight [outputs][inputs] is stored transposed on the device, [inputs][outputs].
struct Parameter {
  Parameter(const char *given, std::size_t count, std::size_t turned_inputs = 0);
  /// Not inline, so that network.cpp need not compile it for each of its parameters.
  ~Parameter();

  std::string name;
  std::size_t numbers, inputs;
  /// Number of partial sums of the gradient, and rows of each.
  int slices = 0, slice_rows = 0;
  device::Array<float> value, moment1, moment2, moment3, gradient;
  /// The gradient of several training steps, or a gradient that was set; `summed`: it is used instead of the partial sums.
  device::Array<float> sum;
  bool summed = false;
  /// Whether its values are float16, so that values that are set are rounded; and the rounding errors, if they are stored.
  bool half = false;
  device::Array<float> remainder;
  /// Copy [outputs][inputs] for the backward pass.
  device::Array<float> copy;
  /// 16-bit copies, two values per word: [inputs][outputs], and in fragments for the forward and backward products.
  device::Array<std::uint32_t> rows16, forward16, backward16;

  /// Allocates partial sums of the gradient, with as many slices of rows as keep `warps` warps busy.
  void slice(std::size_t items, std::size_t rows, std::size_t warps);
  /// Allocates partial sums of the gradient for slices of `rows_of_slice` rows; 0: a single slice.
  void slice_by(int rows_of_slice, std::size_t rows);
};

/// Warps that are resident on one nominal device. Rows are divided into slices for this device, so that sums are the same bits on all devices.
constexpr std::size_t NOMINAL_WARPS = 132 * 64;

class CudaSession : public NativeSession {
public:
  /// Not inline, so that network.cpp need not compile the destructors of all these members.
  ~CudaSession() override;
  void set(std::size_t index, const void *data) override;
  void set_events(std::size_t index, const std::uint64_t *begin, const std::uint32_t *ids) override;
  void get(std::size_t index, void *data) override;
  void run() override;
  float train_step() override;
  std::string profile() override;

protected:
  CudaSession(const std::string &project, int first_steps, int first_batch, bool trains);
  /// Waits for all work that was started, so that memory can be released.
  void leave();

  /// A list in braces, so that network.cpp need not build a vector for each parameter.
  using Shape = std::initializer_list<std::size_t>;

  // Called by the constructor of the network, to register its parts.
  void add_parameter(Parameter &made, Shape shape);
  void add_learned(Parameter &made, Shape shape, int moments);
  /// Adds the rounding errors of a float16 weight.
  void add_remainder(Parameter &of, Shape shape);
  void add_input(const char *name, Held &held);
  /// Adds a state or the values of an output; `name` is that of its values before the first step, null if nothing reads them.
  void add_begun(const char *name, Held &held);
  /// Adds the sent spikes of `source`; before the first step, all spikes are sent.
  void add_sent(Held &sent, const Held &source);
  /// Adds the counter of dropped spikes.
  void add_dropped();
  void add_record(const char *name, Held &held);
  /// Adds the adjoint of a record or current at every step; `given`: the caller sets it after a run with autograd.
  void add_adjoint(const char *name, Held &held, bool given);
  /// Adds the deltas of a segment; the previous segment reads their first `ahead` steps.
  void add_deltas(Held &held, int ahead);
  void add_labels(int classes);
  void add_targets(const TargetForm &form);
  void upload_tables(std::size_t count);

  // Implemented by the network.
  /// Sets the sizes of buffers and divides the work among blocks.
  virtual void lay_out() = 0;
  /// Sets the addresses that kernels use.
  virtual void bind() = 0;
  virtual void prepare() = 0;
  /// Runs the current segment forward.
  virtual void forward() = 0;
  virtual int loss_numbers() = 0;
  virtual void find_loss() = 0;
  /// Sets the adjoints to 0.
  virtual void begin_adjoints(kernels::Moves &moves) = 0;
  /// Sets the adjoints of states to 0 at a truncation of the gradient, which occurs every cut_every() steps (0: never), at the end of a segment.
  virtual void forget_later(kernels::Moves &moves) = 0;
  virtual int cut_every() const = 0;
  /// Runs the current segment backward; its gradients are added to those of later segments.
  virtual void backward() = 0;
  virtual void update() = 0;
  /// Sums the slices of a gradient, in the model's order of elements.
  virtual void gather_gradient(const Parameter &of, float *to) = 0;
  /// Stores the gradient of this step as the sum over several steps or, with `more`, adds it to that sum.
  virtual void add_gradient(const Parameter &of, bool more) = 0;
  virtual std::string sharing() const = 0;
  /// Returns the number of kernels of a training step, as counted by timed().
  virtual int kernels() const = 0;
  /// Starts the timer of a kernel, if kernels are timed.
  void timed(int kernel) { times.begin(kernel); }
  /// Whether kernels are timed, and so run one after the other.
  bool is_timed() const { return times.running(); }
  /// Returns the steps of a segment without a backward pass, such that the sums outside the time loop need at most SCRATCH_FLOATS.
  virtual int most_steps_at_once() const = 0;
  /// Returns the number of steps whose sums fit, with `numbers` values per step and sample.
  int steps_in(std::size_t numbers) const;

  const int device_number;
  std::int32_t team_blocks = 0, tile = 0, clusters = 1;
  /// Maximum KiB of weights that a block keeps in shared memory.
  std::int32_t near = 1 << 20;
  /// Number of steps per segment; first step and length of the current segment.
  int kept = 1, first = 0, length = 0;
  bool last_segment() const { return first + length == steps; }
  /// Whether the gradient is truncated at the end of the current segment.
  bool is_cut() const { return cut_every() > 0 && !last_segment() && (first + length) % cut_every() == 0; }
  /// Returns the number of steps after the current segment from which gradients return.
  int steps_after() const {
    const int end = first + length, every = cut_every();
    return (every > 0 ? std::min(steps, (end + every - 1) / every * every) : steps) - end;
  }
  /// Returns the counter of dropped spikes; null if a segment runs again.
  unsigned long long *counted() const { return again ? nullptr : dropped.data(); }
  device::Array<std::int32_t> labels;
  /// Targets other than one class per sample.
  device::Array<float> targets;
  device::Array<float> losses;
  /// For each input, whether it contains values other than spikes: for kernels, and for the host.
  device::Array<int> flags;
  std::vector<device::Array<std::uint32_t>> tables;

private:
  struct Initial {
    Held *held;
    InitialValues *values;
    /// Rows of all samples, as the buffer stores them, and rows before each segment.
    device::Array<std::uint32_t> rows{}, checkpoints{};
  };
  struct Deltas {
    Held *held;
    int ahead;
  };
  struct Input {
    std::string name;
    Held *held;
    bool filled = false;
    /// Values that were set for the call after the next one; `ahead` receives them on the device, and `there` is true when they are sent.
    const float *next = nullptr;
    device::Array<float> ahead{};
    bool there = false;
    std::size_t numbers(int steps) const { return static_cast<std::size_t>(steps) * static_cast<std::size_t>(held->batch) * held->size; }
    void forget_next() {
      next = nullptr;
      there = false;
    }
  };

  std::vector<Parameter *> parameters, learned;
  std::vector<std::unique_ptr<Initial>> initials;
  std::vector<Input> inputs;
  /// Labels (or targets) that were set for the call after the next one, and those that wait to become the current ones.
  std::vector<std::int32_t> labels_next, labels_there;
  std::vector<float> targets_next, targets_there;
  std::vector<Deltas> deltas;
  device::Array<float> staging;
  device::Array<std::uint64_t> event_rows;
  device::Array<std::uint32_t> event_ids;
  std::unique_ptr<device::HostFlags> host_flags;
  std::vector<Held *> records;
  /// The stream of the caller, if it has set one; otherwise calls return only when the device has finished.
  device::Stream stream = nullptr;
  bool streams = false;
  device::Event so_far;
  device::Upload uploads;
  device::Ahead copies;
  /// Number of layouts so far; launches for one layout are the same every time.
  std::size_t layouts = 0;
  device::Array<unsigned long long> dropped;
  /// Whether a segment is run again for the backward pass.
  bool again = false;
  device::Replay replay;
  /// Whether the kernels of training steps are timed; they are then launched one by one.
  std::int32_t time_kernels = 0;
  device::KernelTimes times;
  unsigned sent_ahead = 0;

  void add_array(const std::string &name, snnc_role role, std::vector<std::size_t> shape, Parameter &of, device::Array<float> &numbers);
  void add_stream();
  void put_numbers(const Parameter &of, device::Array<float> &numbers, const void *data);
  void resized() override;
  /// Throws if an input contained values other than spikes.
  void check_spikes();
  void begin_input(Held &held);
  void set_input(Input &input, const float *data);
  void fill_input(Input &input, const float *numbers);
  /// Sends the inputs of the next call while this one runs.
  void send_next();
  /// Makes the inputs that were sent the current ones.
  void take_next();
  int segments() const { return (steps + kept - 1) / kept; }
  void open_segment(int number);
  void carry_on(Held &held, int by);
  void forward_pass();
  void backward_pass();
  void sum_gradients();
  void change_parameters();
  /// Saves the rows before a segment or, with `back`, restores them.
  void keep(int segment, bool back);
  void ready(bool trains);
  void begin_rows(Held &held, Initial *initial, kernels::Moves &moves);
  void fill(Initial &initial);
};

} // namespace snnc

#endif
