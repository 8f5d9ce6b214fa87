// A session on the device: named tensors, any number of steps and samples. The network's network.cu fills it.
#ifndef SNNC_CUDA_SESSION_HPP
#define SNNC_CUDA_SESSION_HPP

#include "constants.hpp"
#include "native_session.hpp"
#include "replay.hpp"
#include "session_kernels.hpp"
#include "uploads.hpp"

#include <algorithm>
#include <memory>

namespace snnc {

/// What a row of a buffer holds: float32, numbers of 16 bits, or a bit for each value.
enum class Form { NUMBERS, HALVES, SPIKES };

/// A buffer of a sequence: [slot][sample] rows; of the whole sequence, or of a segment.
struct Held {
  Held(std::size_t values, int steps_before, Form form, bool whole_sequence)
      : size(values), words(form == Form::SPIKES   ? (values + 31) / 32
                            : form == Form::HALVES ? (values + 1) / 2
                                                   : values),
        past(steps_before), bits(form == Form::SPIKES), whole(whole_sequence) {}

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
  /// Words of all samples at a step.
  std::size_t row_words() const { return static_cast<std::size_t>(batch) * words; }
  std::uint32_t *step(int t) const { return data.data() + static_cast<std::size_t>((t + past) % slots) * row_words(); }
  /// Slots in front of a segment that a checkpoint keeps.
  int kept() const { return whole ? 0 : slots == 1 ? 1 : past; }
  /// What kernels take in the segment that begins with step `first`.
  template <class Kind> void view(Kind &kind, int first) const {
    kind.data = reinterpret_cast<decltype(kind.data)>(data.data());
    kind.slots.slots = slots;
    kind.slots.batch = batch;
    kind.slots.shift = whole ? first : 0;
  }
};

/// A parameter; a dense weight [outputs][inputs] lies turned on the device, [inputs][outputs].
struct Parameter {
  Parameter(const char *given, std::size_t count, std::size_t turned_inputs = 0) : name(given), numbers(count), inputs(turned_inputs) {
    value.resize(count);
  }

  std::string name;
  std::size_t numbers, inputs;
  /// Partial sums of the gradient, and rows of each.
  int slices = 0, slice_rows = 0;
  device::Array<float> value, moment1, moment2, moment3, gradient;
  /// The gradient of several steps, or one that was set; `summed`: it is the one that counts.
  device::Array<float> sum;
  bool summed = false;
  /// Whether its numbers have float16 values: what is set is rounded to the nearest; and what rounding lost, where that is kept.
  bool half = false;
  device::Array<float> remainder;
  /// [outputs][inputs], for the backward pass.
  device::Array<float> copy;
  /// Numbers of 16 bits, two a word: [inputs][outputs], and in fragments for the forward and the backward product.
  device::Array<std::uint32_t> rows16, forward16, backward16;

  /// Makes room for partial sums of the gradient: as many slices of the rows as keep all warps busy.
  void slice(std::size_t items, std::size_t rows, std::size_t warps);
  /// The same for slices of so many rows; 0: there is one slice.
  void slice_by(int rows_of_slice, std::size_t rows);
};

class CudaSession : public NativeSession {
public:
  void set(std::size_t index, const void *data) override;
  void set_events(std::size_t index, const std::uint64_t *begin, const std::uint32_t *ids) override;
  void get(std::size_t index, void *data) override;
  void run() override;
  float train_step() override;
  std::string profile() override;

protected:
  CudaSession(const std::string &project, int first_steps, int first_batch, bool trains);
  /// Waits for all that was started: memory is given back behind it.
  void leave();

  // What the network is made of; called while it is constructed.
  void add_parameter(Parameter &made, std::vector<std::size_t> shape);
  void add_learned(Parameter &made, std::vector<std::size_t> shape, int moments);
  /// What rounding loses of a weight that has float16 values.
  void add_remainder(Parameter &of, std::vector<std::size_t> shape);
  void add_input(const char *name, Held &held);
  /// A state, or an output's values; `name` is that of its values before the first step, null where no one reads them.
  void add_begun(const char *name, Held &held);
  /// What is sent of the spikes of `source`: before the first step, all of them.
  void add_sent(Held &sent, const Held &source);
  /// Counts spikes that are dropped.
  void add_dropped();
  void add_record(const char *name, Held &held);
  /// The adjoint of a record or of a current at every step; `given`: it is set after a run with autograd.
  void add_adjoint(const char *name, Held &held, bool given);
  /// Deltas of a segment, of which the first `ahead` steps are read by the segment before.
  void add_deltas(Held &held, int ahead) { deltas.push_back({&held, ahead}); }
  void add_labels(int classes);
  void add_targets(const TargetForm &form);
  void upload_tables(std::size_t count);

  // What the network does.
  /// Gives buffers their sizes, and shares the work out.
  virtual void lay_out() = 0;
  /// Tells the kernels where everything is.
  virtual void bind() = 0;
  virtual void prepare() = 0;
  /// Runs the segment at hand forward.
  virtual void forward() = 0;
  virtual int loss_numbers() = 0;
  virtual void find_loss() = 0;
  /// Adjoints begin with 0.
  virtual void begin_adjoints(kernels::Moves &moves) = 0;
  /// Adjoints of states do as well where the gradient is cut: every so many steps (0: nowhere), where a segment ends.
  virtual void forget_later(kernels::Moves &moves) = 0;
  virtual int cut_every() const = 0;
  /// Goes back through the segment at hand; gradients add to those of later segments.
  virtual void backward() = 0;
  virtual void update() = 0;
  /// Adds the slices of a gradient up, in the order of the model.
  virtual void gather_gradient(const Parameter &of, float *to) = 0;
  /// Makes the gradient of this step the sum of several, or (`more`) adds it to that.
  virtual void add_gradient(const Parameter &of, bool more) = 0;
  virtual std::string sharing() const = 0;
  /// Steps of a segment where nothing is kept for a backward pass: sums that leave the time loop take no more than SCRATCH_FLOATS.
  virtual int most_steps_at_once() const = 0;
  /// Steps of which the sums fit, at so many numbers of a step and sample.
  int steps_in(std::size_t numbers) const {
    constexpr std::size_t SCRATCH_FLOATS = std::size_t(1) << 26;
    return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(steps),
                                                  std::max<std::size_t>(1, SCRATCH_FLOATS / (numbers * static_cast<std::size_t>(batch)))));
  }

  const int device_number;
  std::int32_t team_blocks = 0, tile = 0, clusters = 1;
  /// KiB of weights that a block keeps in its shared memory, at most.
  std::int32_t near = 1 << 20;
  /// Steps of a segment in this layout; the segment at hand.
  int kept = 1, first = 0, length = 0;
  bool last_segment() const { return first + length == steps; }
  /// Whether nothing comes back from after the segment at hand, although the sequence goes on.
  bool is_cut() const { return cut_every() > 0 && !last_segment() && (first + length) % cut_every() == 0; }
  /// Steps after the segment at hand from which something comes back.
  int steps_after() const {
    const int end = first + length, every = cut_every();
    return (every > 0 ? std::min(steps, (end + every - 1) / every * every) : steps) - end;
  }
  /// Where dropped spikes are counted; null where a segment runs again.
  unsigned long long *counted() const { return again ? nullptr : dropped.data(); }
  device::Array<std::int32_t> labels;
  /// Where targets are more than classes.
  device::Array<float> targets;
  device::Array<float> losses;
  /// Of each input, whether it holds what is no spike: for kernels, and for the host.
  device::Array<int> flags;
  std::vector<device::Array<std::uint32_t>> tables;

private:
  struct Initial {
    Held *held;
    InitialValues *values;
    /// Rows of all samples, as the buffer keeps them; those in front of each segment.
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
    /// Where the numbers of the step behind the next one are, until that runs; and what came of them.
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
  /// Labels of the step behind the next one, until that runs and behind it.
  std::vector<std::int32_t> labels_next, labels_there;
  std::vector<float> targets_next, targets_there;
  std::vector<Deltas> deltas;
  device::Array<float> staging;
  device::Array<std::uint64_t> event_rows;
  device::Array<std::uint32_t> event_ids;
  std::unique_ptr<device::Told> told;
  std::vector<Held *> records;
  /// The caller's stream, once one was named; until then calls return when the device has ended.
  device::Stream stream = nullptr;
  bool streams = false;
  device::Event so_far;
  device::Upload uploads;
  device::Ahead copies;
  /// Layouts so far: what is started for one of them is the same every time.
  std::size_t layouts = 0;
  device::Array<unsigned long long> dropped;
  /// Whether a segment runs again, for the backward pass.
  bool again = false;
  device::Replay replay;
  unsigned sent_ahead = 0;

  void add_array(const std::string &name, snnc_role role, std::vector<std::size_t> shape, Parameter &of, device::Array<float> &numbers);
  void add_stream();
  void put_numbers(const Parameter &of, device::Array<float> &numbers, const void *data);
  void resized() override;
  /// Refuses to go on where an input was found to hold what is no spike.
  void check_spikes();
  void begin_input(Held &held);
  void set_input(Input &input, const float *data);
  void fill_input(Input &input, const float *numbers);
  /// Sends what was given for the step behind, while this one runs.
  void send_next();
  /// Makes what was sent the input.
  void take_next();
  int segments() const { return (steps + kept - 1) / kept; }
  void open_segment(int number);
  void carry_on(Held &held, int by);
  void forward_pass();
  void backward_pass();
  void sum_gradients();
  void change_parameters();
  /// Puts what stands in front of a segment aside (`back`: brings it back).
  void keep(int segment, bool back);
  void ready(bool trains);
  void begin_rows(Held &held, Initial *initial, kernels::Moves &moves);
  void fill(Initial &initial);
};

} // namespace snnc

#endif
