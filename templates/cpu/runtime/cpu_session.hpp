// A session on the CPU: named tensors, any number of steps, samples and threads. network.cpp defines the network.
#ifndef SNNC_CPU_SESSION_HPP
#define SNNC_CPU_SESSION_HPP

#include "checkpoints.hpp"
#include "native_session.hpp"
#include "parameters.hpp"
#include "threads.hpp"
#include "values.hpp"

#include <initializer_list>

namespace snnc {

class CpuSession : public NativeSession {
public:
  /// Not inline, so that network.cpp need not compile the destructors of all these members.
  ~CpuSession() override;
  void set(std::size_t index, const void *data) override;
  void get(std::size_t index, void *data) override;
  void set_events(std::size_t index, const std::uint64_t *begin, const std::uint32_t *ids) override;
  void run() override;
  float train_step() override;
  std::string profile() override;

protected:
  /// `table_count`: number of tables in the project's file of tables.
  CpuSession(const std::string &project, std::size_t table_count, int first_steps, int first_batch, bool trains);

  /// A list in braces, so that network.cpp need not build a vector for each parameter.
  using Shape = std::initializer_list<std::size_t>;

  // Called by the constructor of the network, to register its parts.
  void add_parameter(Parameter &made, Shape shape);
  void add_learned(Parameter &made, Shape shape, int moments);
  /// Stores the rounding errors of a parameter.
  void add_remainder(Parameter &made, Shape shape);
  /// `dense`: some reader needs rows; `lists`: some reader needs lists.
  void add_input(const char *name, Source &source, bool spikes, bool dense, bool lists);
  void add_state(const char *name, Rows &rows);
  /// The values of an output; `initial` is the name of its values before the first step, null if nothing reads them.
  void add_source(const char *name, const char *initial, Source &source);
  void add_record(const char *name, Rows &rows);
  void add_labels(int classes);
  /// Limits the spikes that a source sends per step; `key` selects them, and dropped spikes are counted.
  void limit_spikes(Source &source, const Parameter &capacity, const Parameter &key);
  void add_targets(const TargetForm &form);
  /// An adjoint that the caller sets (`given`, of a record) or reads (of an input).
  void add_adjoint(const char *name, Rows &rows, bool given);

  // Implemented by the network.
  virtual void lay_out() = 0;
  /// Copies parameters to other layouts; all workers share the work.
  virtual void prepare(int worker, int workers) = 0;
  /// Runs steps first ... last - 1; `again`: their spikes are already listed.
  virtual void forward(const Worker &w, int first, int last, bool again) = 0;
  /// Computes the loss of each sample of a worker, and the adjoints of the records.
  virtual void find_loss(const Worker &w, float *losses) = 0;
  /// Computes the adjoints of steps from ... to - 1, whose histories are stored, after those of all later steps.
  virtual void begin_adjoints(const Worker &w) = 0;
  virtual void backward(const Worker &w, int from, int to) = 0;
  virtual void end_adjoints(const Worker &w) = 0;
  /// Computes a worker's part of the shared gradients, over a block of steps whose adjoints are complete; `fresh`: this is the first
  /// block of an update.
  virtual void share_gradients(int worker, int first, int last, bool fresh) = 0;
  /// Computes values that an update needs from all gradients, such as their norm.
  virtual void measure_gradients();
  virtual void update(int worker, int workers) = 0;

  template <class Work> void in_parallel(int count, const Work &work) { pool.run(count, work); }
  /// Returns the part of `numbers` elements that a worker updates, in whole lines.
  static std::pair<std::size_t, std::size_t> part(std::size_t numbers, int worker, int workers);

  /// Whether no worker has more than one sample, so that no matrix products are computed.
  bool alone() const;

  /// Whether memory is saved: histories are stored only between checkpoints, and large weights are not copied.
  bool spares() const { return segment < steps; }

  /// Whether buffers contain the sequence of the last training step.
  bool trained = false;
  /// Number of steps whose deltas stay in the cache until the weight gradients are computed.
  int block_length() const;

  /// Number of steps whose histories are stored: all, or those between two checkpoints.
  int segment = 1;
  /// Whether training steps store records of all steps; if only a mean is read, the readout does not run step by step.
  bool records_training = true;
  /// Whether the current step stores records.
  bool recording = true;
  /// Whether all threads share some gradients.
  bool shares = false;
  std::vector<Worker> workers;
  /// Temporary memory of a worker.
  Scratch &scratch_of(int worker);
  std::vector<std::int32_t> labels;
  /// Targets other than one class per sample.
  std::vector<float> targets;

  /// Entries of connections that are not dense.
  const std::vector<Table> tables;

private:
  struct Initial {
    Rows *rows;
    Source *source;
    const InitialValues *values;
  };
  struct Input {
    std::string name;
    Source *source;
    bool spikes, dense, lists, filled;
  };

  std::vector<Scratch> scratches;
  std::vector<Parameter *> parameters;
  std::vector<Initial> initials;
  std::vector<std::pair<std::string, Source *>> sources;
  std::vector<Input> inputs;
  std::vector<float> losses;
  std::atomic<std::uint64_t> dropped{0};
  std::int32_t threads;
  Checkpoints checkpoints;
  Pool pool;

  void resized() override;
  void ready(bool trains);
  void lay_out_checkpoints();
  /// Allocates the gradients of all workers; returns how many of them contain gradients of earlier steps.
  std::size_t keep_gradients();
  /// Computes all adjoints block by block; after each block, the workers compute the shared gradients together.
  void backward_in_blocks(std::size_t kept);
  void backward_of_segment(const Worker &w, int from, int to);
  void run_forward(const Worker &w);
  void change_parameters();

  // session_tensors.cpp
  void add_initial(const char *name, Rows *rows, Source *source, std::size_t size);
  /// Copies the rows of all steps.
  void get_rows(const Rows &rows, float *to) const;

  // session_inputs.cpp
  void set_input(Input &input, const float *data);
  void keep_input(Input &input, bool listed);
  void fill_input(Input &input, const Worker &w, const float *data, bool listed);
  void fill_events(Input &input, const Worker &w, const std::uint64_t *begin, const std::uint32_t *ids);

  // session_starts.cpp
  void begin(const Worker &w);
  void begin_rows(const Worker &w, Rows &rows, const Initial *initial);
  void go_on(const Worker &w, Rows &rows) const;
  void begin_lists(const Worker &w, Source &source, const Initial *initial);
};

} // namespace snnc

#endif
