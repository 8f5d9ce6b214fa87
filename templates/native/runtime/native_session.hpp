// Base class of sessions on CPUs and GPUs: named tensors, settings, values before the first step, weights in files.
#ifndef SNNC_NATIVE_SESSION_HPP
#define SNNC_NATIVE_SESSION_HPP

#include "snnc_files.hpp"
#include "snnc_session.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace snnc {

/// Values of a state or an output before the first step: those of the weight file for every sample, or values that the caller set.
struct InitialValues {
  std::string name;
  std::size_t size;
  std::vector<float> usual, given;
  /// Whether they changed after a session last copied them.
  bool changed;
  const float *of_sample(std::size_t sample) const;
};

struct TargetForm;

class NativeSession : public Session {
public:
  /// Not inline, so that the source of a network need not compile the destructors of all these members.
  ~NativeSession() override;
  const std::vector<TensorInfo> &tensors() const override;
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
  /// Adds an integer setting; if `resizes`, a change calls resized().
  void add_setting(const char *name, std::int32_t &setting, std::int32_t least, bool resizes, std::int32_t most = 1 << 24);
  /// Adds values before the first step; they have no tensor if `name` is null.
  InitialValues &add_initial_values(const char *name, std::size_t size);
  /// Adds the adjoint of a record or current at every step; `given`: the caller sets it after a run with autograd.
  void add_adjoint_tensor(const char *name, std::size_t size, bool given, Setter set, Getter get);
  /// Adds the loss, the learning rate and the number of updates.
  void add_loss_tensors();
  /// Returns the checked labels, one per sample.
  std::vector<std::int32_t> checked_labels(const void *data, int classes) const;
  /// Returns the checked targets of all samples, for targets other than one class per sample; NaN, and class -1 of a step, are ignored.
  std::vector<float> checked_targets(const void *data, const TargetForm &form) const;
  std::size_t target_numbers(const TargetForm &form) const;
  /// Reads initial values and parameters from the weight file, which has `count` of them at `places`.
  void load(const Stored *places, std::size_t count);

  /// Called when a setting that affects sizes changes.
  virtual void resized() = 0;
  /// Resizes tensors according to the settings; values that were set or computed for other sizes are lost.
  void resize_tensors();
  /// Throws if the project was compiled without training.
  void check_trainable() const;
  /// Stores the sum of the losses of a step as its loss.
  void sum_losses(const std::vector<float> &losses);
  /// Returns the number of samples over which a loss is averaged.
  int averaged() const { return samples_of_update == 0 ? batch : samples_of_update; }
  /// Returns the time in seconds.
  static double now();

  std::string folder;
  const bool trainable;
  std::int32_t steps, batch;
  float learning_rate = 0;
  std::int32_t updates = 0;
  std::vector<TensorInfo> infos;
  std::vector<Access> accesses;
  std::int32_t resume = 0, wanted_segment = 0;
  /// If set, a run stores the values for the backward pass, and a training step runs backward from the last run, without an update.
  std::int32_t autograd = 0;
  /// The part of an update that a training step performs: everything; gradients, which replace earlier ones; gradients, added to earlier
  /// ones; only the update, with gradients that were summed or set; or again the gradients of the last sequence, without a forward pass,
  /// after a change of parameters that only the adjoints read.
  enum : std::int32_t { ALONE, BEGINS, GOES_ON, CHANGES, AGAIN };
  std::int32_t gather = ALONE;
  /// Number of samples of an update, of which a step may process a part; 0: the batch.
  std::int32_t samples_of_update = 0;
  /// Whether buffers have their sizes; whether they store values for a backward pass; whether a run with autograd awaits its adjoint.
  bool laid_out = false, training = false, ran = false;
  /// Whether parameters changed after they were last prepared for passes.
  bool stale = true;
  float loss = 0;
  unsigned forward_runs = 0, train_runs = 0;
  double seconds = 0;

private:
  std::vector<std::vector<std::size_t>> shapes;
  const Stored *stored = nullptr;
  std::size_t stored_count = 0;
  /// A deque, because tensors and sessions refer to its elements, which must not move.
  std::deque<InitialValues> initial_values;

  std::size_t sized(std::size_t axis) const;
};

} // namespace snnc

#endif
