// The common base of sessions on CPUs and GPUs: named tensors, settings, values before the first step, weights in files.
#ifndef SNNC_NATIVE_SESSION_HPP
#define SNNC_NATIVE_SESSION_HPP

#include "snnc_files.hpp"
#include "snnc_session.hpp"
#include "snnc_targets.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace snnc {

/// Values of a state or an output before the first step: those of the weights file for every sample, or those that the caller set.
struct InitialValues {
  std::string name;
  std::size_t size;
  std::vector<float> usual, given;
  /// Whether they changed since a session last copied them.
  bool changed;
  const float *of_sample(std::size_t sample) const { return given.empty() ? usual.data() : given.data() + sample * size; }
};

class NativeSession : public Session {
public:
  /// Not inline: the source of every network would otherwise compile the destructors of all these members.
  ~NativeSession() override;
  const std::vector<TensorInfo> &tensors() const override { return infos; }
  void save(const std::string &path) override;

protected:
  /// Sizes of axes that settings can change.
  enum : std::size_t { STEPS = ~std::size_t(0), BATCH = STEPS - 1 };
  using Setter = std::function<void(const void *)>;
  using Getter = std::function<void(void *)>;
  struct Access {
    Setter set;
    Getter get;
  };

  NativeSession(const std::string &project, int first_steps, int first_batch, bool trains);

  void add(TensorInfo info, Setter set, Getter get);
  /// An integer setting; if `resizes` is true, a change of it calls resized().
  void add_setting(const char *name, std::int32_t &setting, std::int32_t least, bool resizes, std::int32_t most = 1 << 24);
  /// Values before the first step; they have no tensor if `name` is null.
  InitialValues &add_initial_values(const char *name, std::size_t size);
  /// The adjoint of a record or of a current at every step; `given`: it is set after a run with autograd.
  void add_adjoint_tensor(const char *name, std::size_t size, bool given, Setter set, Getter get);
  /// The loss, the learning rate and the number of updates.
  void add_loss_tensors();
  /// One label per sample.
  std::vector<std::int32_t> checked_labels(const void *data, int classes) const;
  /// Targets other than one class: numbers per sample (or step), the number of classes that they index (0: they are values), whether
  /// there are targets for each step, and whether they end with the length of the sequence.
  /// Targets of all samples; NaN, and class -1 of a step, are ignored.
  std::vector<float> checked_targets(const void *data, const TargetForm &form) const;
  std::size_t target_numbers(const TargetForm &form) const;
  /// Reads initial values and parameters.
  void load(const std::vector<Stored> &places);

  /// Called when a setting changes sizes.
  virtual void resized() = 0;
  /// Resizes tensors to the settings; values that were set or computed for other sizes are lost.
  void resize_tensors();
  /// Refuses a training step if the project was compiled without one.
  void check_trainable() const;
  /// Stores the sum of a step's losses as its loss.
  void sum_losses(const std::vector<float> &losses);
  /// Number of samples over which a loss is averaged.
  int averaged() const { return samples_of_update == 0 ? batch : samples_of_update; }
  /// Time in seconds.
  static double now();

  std::string folder;
  const bool trainable;
  std::int32_t steps, batch;
  float learning_rate = 0;
  std::int32_t updates = 0;
  std::vector<TensorInfo> infos;
  std::vector<Access> accesses;
  std::int32_t resume = 0, wanted_segment = 0;
  /// A run stores the values that the backward pass reads; a backward pass starts from the last run and changes no parameter.
  std::int32_t autograd = 0;
  /// The part of an update that a training step does: all of it; the gradients, added to those of earlier steps; only the change of the
  /// parameters, with gradients that were summed or set; or the gradients of the last sequence again, without its forward pass, after
  /// parameters changed that only the adjoints read.
  enum : std::int32_t { ALONE, BEGINS, GOES_ON, CHANGES, AGAIN };
  std::int32_t gather = ALONE;
  /// Samples of an update, of which a step may have a part; 0: the batch.
  std::int32_t samples_of_update = 0;
  /// Whether buffers have their sizes, and store what a backward pass reads; whether a run with autograd waits for its adjoint.
  bool laid_out = false, training = false, ran = false;
  /// Whether parameters changed since they were last prepared for passes.
  bool stale = true;
  float loss = 0;
  unsigned forward_runs = 0, train_runs = 0;
  double seconds = 0;

private:
  std::vector<std::vector<std::size_t>> shapes;
  std::vector<Stored> stored;
  /// Must not move: tensors and sessions refer to them.
  std::deque<InitialValues> initial_values;

  std::size_t sized(std::size_t axis) const;
};

} // namespace snnc

#endif
