// Reductions of tensors over dimensions.
#ifndef SNNC_POPOPS_REDUCE_HPP
#define SNNC_POPOPS_REDUCE_HPP

#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/Operation.hpp>

namespace popops {

/// The reduction, a factor for the result (a FLOAT of one element), and whether the result is added to the output.
struct ReduceParams {
  ReduceParams() = default;
  ReduceParams(Operation operation, bool addToOutput = false) : op(operation), update(addToOutput) {}
  ReduceParams(Operation operation, bool addToOutput, poplar::Tensor factor) : op(operation), update(addToOutput), scale(factor), useScale(true) {}
  Operation op = Operation::ADD;
  bool update = false;
  poplar::Tensor scale;
  bool useScale = false;
};

poplar::Tensor reduce(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Type &outType, const std::vector<std::size_t> &dims,
                      ReduceParams params, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                      const poplar::OptionFlags &options = {});
poplar::Tensor reduce(poplar::Graph &graph, const poplar::Tensor &in, const std::vector<std::size_t> &dims, ReduceParams params,
                      poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void reduceWithOutput(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &out, const std::vector<std::size_t> &dims,
                      ReduceParams params, poplar::program::Sequence &prog, const poplar::DebugContext &context = {},
                      const poplar::OptionFlags &options = {});

/// The following functions append to compute sets, which the caller executes in order.
poplar::Tensor reduce(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Type &outType, const std::vector<std::size_t> &dims,
                      ReduceParams params, std::vector<poplar::ComputeSet> &computeSets, const poplar::DebugContext &context = {},
                      const poplar::OptionFlags &options = {});
poplar::Tensor reduce(poplar::Graph &graph, const poplar::Tensor &in, const std::vector<std::size_t> &dims, ReduceParams params,
                      std::vector<poplar::ComputeSet> &computeSets, const poplar::DebugContext &context = {},
                      const poplar::OptionFlags &options = {});
void reduceWithOutput(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &out, const std::vector<std::size_t> &dims,
                      ReduceParams params, std::vector<poplar::ComputeSet> &computeSets, const poplar::DebugContext &context = {},
                      const poplar::OptionFlags &options = {});

/// One of several reductions that run together.
struct SingleReduceOp {
  SingleReduceOp(poplar::Tensor input, std::vector<std::size_t> dimensions, ReduceParams parameters, poplar::Type outType,
                 poplar::DebugContext context = {})
      : in(input), dims(dimensions), params(parameters), useOutType(true), outType(outType), debugContext(context) {}
  SingleReduceOp(poplar::Tensor input, std::vector<std::size_t> dimensions, ReduceParams parameters, poplar::DebugContext context = {})
      : in(input), dims(dimensions), params(parameters), debugContext(context) {}
  poplar::Tensor in;
  std::vector<std::size_t> dims;
  ReduceParams params;
  bool useOutType = false;
  poplar::Type outType;
  poplar::DebugContext debugContext;
};

/// Fills `outputs`, or creates them if it is empty.
void reduceMany(poplar::Graph &graph, const std::vector<SingleReduceOp> &reductions, std::vector<poplar::Tensor> &outputs,
                poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});

} // namespace popops

#endif
