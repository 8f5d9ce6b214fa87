// Targets other than one class per sample: their layout, and a check of the caller's values.
#ifndef SNNC_TARGETS_HPP
#define SNNC_TARGETS_HPP

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace snnc {

/// Columns of the targets per sample or step, classes of an output (0: values), and whether the last column is the sequence length.
struct TargetForm {
  int columns, classes;
  bool each_step, lengths;

  std::size_t numbers(std::size_t batch, std::size_t steps) const {
    return batch * (each_step ? steps : 1) * static_cast<std::size_t>(columns);
  }
  std::vector<std::size_t> shape(std::size_t batch, std::size_t steps) const {
    const std::size_t width = static_cast<std::size_t>(columns);
    return each_step ? std::vector<std::size_t>{batch, steps, width} : std::vector<std::size_t>{batch, width};
  }
};

/// Returns the targets of all samples; NaN, and class -1 of a step, are ignored.
inline std::vector<float> checked_targets(const void *data, const TargetForm &form, std::size_t batch, std::size_t steps) {
  std::vector<float> targets(form.numbers(batch, steps));
  std::memcpy(targets.data(), data, targets.size() * sizeof(float));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const bool length = form.lengths && i % static_cast<std::size_t>(form.columns) == static_cast<std::size_t>(form.columns - 1);
    if (!length && form.classes == 0)
      continue;
    const float least = length ? 1.0f : form.each_step ? -1.0f : 0.0f;
    const float most = length ? static_cast<float>(steps) : static_cast<float>(form.classes - 1);
    if (!(targets[i] >= least && targets[i] <= most))
      throw std::invalid_argument((length ? "length " : "target ") + std::to_string(targets[i]) + " is not in " + std::to_string(least) +
                                  " ... " + std::to_string(most));
  }
  return targets;
}

} // namespace snnc

#endif
