// Code that recurrent layers share: sequences that a loop steps through, and products over all steps at once.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include <popnn/NonLinearityDef.hpp>
#include <popnn/Rnn.hpp>
#include <popops/ElementWise.hpp>

#include "elementwise.hpp"

namespace poplibs {

/// Adds the program of a step, whose index is a tensor.
using StepBody = std::function<void(const Tensor &index, poplar::program::Sequence &prog)>;

/// A loop over steps, in order or from the last one backward.
void overSteps(Graph &graph, std::size_t steps, bool backwards, const std::string &name, poplar::program::Sequence &prog,
               const StepBody &body);

/// A recurrent layer under construction: its graph, its sizes and the name of its tensors.
struct Recurrence {
  Graph &graph;
  Type type;
  std::size_t steps, batch, in, out;
  std::string name;
  popnn::NonLinearityType cell, gates;

  /// Throws poplibs_error for numbers of steps that are data, several layers, or activations whose gradient needs their input.
  Recurrence(Graph &graph, const popnn::rnn::RnnParams &params, popnn::NonLinearityType cell, popnn::NonLinearityType gates,
             const poplar::OptionFlags &options, std::string name);

  /// [steps, rows..., size], to be sliced by step.
  Tensor sequence(std::vector<std::size_t> shape, const std::string &what) const;
  /// [batch, out]
  Tensor state(const std::string &what) const;
  Tensor stepOf(const Tensor &sequence, const Tensor &index, poplar::program::Sequence &prog) const;
  void setStep(const Tensor &sequence, const Tensor &value, const Tensor &index, poplar::program::Sequence &prog) const;
  /// body(index, prog) for every step, in order or from the last one backward.
  void overSteps(bool backwards, poplar::program::Sequence &prog, const StepBody &body) const;

  Tensor map(const popops::expr::Expr &expression, const std::vector<Tensor> &tensors, poplar::program::Sequence &prog) const;
  Tensor activated(popnn::NonLinearityType type, const Tensor &t, poplar::program::Sequence &prog) const;
  /// The gradient of an activation's input, from the activation's output `value` and its gradient.
  Tensor gradient(popnn::NonLinearityType type, const Tensor &value, const Tensor &valueGradient, poplar::program::Sequence &prog) const;
  Tensor product(const Tensor &a, const Tensor &b, poplar::program::Sequence &prog) const;
  /// a^T b over all steps and samples: [a's size, b's size].
  Tensor productOverSteps(const Tensor &a, const Tensor &b, poplar::program::Sequence &prog) const;
  /// Sums over all steps and samples.
  Tensor sumOverSteps(const Tensor &t, poplar::program::Sequence &prog) const;
  void requireShape(const Tensor &t, const std::vector<std::size_t> &shape, const char *what) const;
};

/// Gates side by side: [units, in, out] as [in, units x out].
inline Tensor sideBySide(const Tensor &weights) {
  return weights.dimShuffle({1, 0, 2}).reshape({weights.dim(1), weights.dim(0) * weights.dim(2)});
}
/// The inverse of sideBySide.
inline Tensor oneByOne(const Tensor &weights, std::size_t units) {
  return weights.reshape({weights.dim(0), units, weights.dim(1) / units}).dimShuffle({1, 0, 2});
}
/// Tensors of one shape as rows of one tensor.
inline Tensor stacked(std::vector<Tensor> tensors) {
  for (Tensor &t : tensors)
    t = t.expand({0});
  return poplar::concat(tensors);
}

} // namespace poplibs
