// Common parts of recurrent layers: their sizes, and the tensors that they step through.
#ifndef SNNC_POPNN_RNN_HPP
#define SNNC_POPNN_RNN_HPP

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poputil/DebugInfo.hpp>

namespace popnn {
namespace rnn {

struct RnnParams {
  poplar::Type dataType;
  std::size_t batchSize;
  /// Steps of the sequence; both names mean the same.
  std::size_t maxTimeSteps, timeSteps;
  /// UNSIGNED_INT, one or [batchSize]: the number of valid steps. The emulator's layers refuse it.
  poplar::Tensor varTimeSteps;
  /// Sizes of the input and of the output.
  std::vector<std::size_t> layerSizes;

  RnnParams(poplar::Type type, std::size_t batch, std::size_t steps, std::vector<std::size_t> sizes)
      : dataType(type), batchSize(batch), maxTimeSteps(steps), timeSteps(steps), layerSizes(std::move(sizes)) {}
  RnnParams(poplar::Type type, std::size_t batch, std::size_t maxSteps, const poplar::Tensor &steps, std::vector<std::size_t> sizes)
      : dataType(type), batchSize(batch), maxTimeSteps(maxSteps), timeSteps(maxSteps), varTimeSteps(steps), layerSizes(std::move(sizes)) {}

  std::size_t getMaxShards(const poplar::Graph &graph) const;
  std::size_t getInputBytesPerTile(const poplar::Graph &graph) const;
  std::size_t getOutputBytesPerTile(const poplar::Graph &graph) const;
  bool variableTimeSteps() const { return varTimeSteps.valid(); }
  bool batchVariableTimeSteps() const { return varTimeSteps.valid() && varTimeSteps.numElements() > 1; }
};

/// [multiple, batch, input or output size]
poplar::Tensor createInitialState(poplar::Graph &graph, const RnnParams &params, bool isOutput, unsigned multiple, unsigned numShards,
                                  const poplar::DebugContext &context = {});
/// [steps, batch, size], mapped so that each step can be sliced.
poplar::Tensor createRecurrentTensor(poplar::Graph &graph, const RnnParams &params, unsigned size, unsigned numShards,
                                     const poplar::DebugContext &context = {});
poplar::Tensor createInputTensor(poplar::Graph &graph, const RnnParams &params, unsigned numShards,
                                 const poplar::DebugContext &context = {});
poplar::Tensor createOutputTensor(poplar::Graph &graph, const RnnParams &params, unsigned numShards,
                                  const poplar::DebugContext &context = {});
/// [multiple x steps, batch, output size]
poplar::Tensor createOutputTensor(poplar::Graph &graph, const RnnParams &params, unsigned multiple, unsigned numShards,
                                  const poplar::DebugContext &context = {});
/// Step n is step n - 1 of `base`; step 0 is a copy of `single`.
poplar::Tensor shiftRnnTensor(poplar::Graph &graph, const RnnParams &params, const poplar::Tensor &base, const poplar::Tensor &single,
                              poplar::program::Sequence &prog, unsigned numShards, const poplar::DebugContext &context = {});

/// What a step reads and writes. Inputs and intermediates with one row per step are [batch, size], without a dimension for that row;
/// outputs keep the dimension.
struct RnnSlice {
  std::vector<poplar::Tensor> inputs;
  poplar::Tensor interimIn, interimOut;
  std::vector<poplar::Tensor> outputs;
};

/// Flags of samples whose sequence has not ended; without varTimeSteps they are invalid.
struct RnnBatchwiseFlags {
  poplar::Tensor mask, inverse;

  bool valid() const { return mask.valid(); }
};

/// begin + counter, both UNSIGNED_INT and [1], is the index of the step. `variableSeqFlag` is invalid without varTimeSteps.
struct TimeStepState {
  poplar::Tensor begin, counter, variableSeqFlag;
};

/// The program of a step. It updates the states in place, writes the slice's outputs and `interimOut`, and sets the created tensors.
/// What it adds to the last program runs once, before the loop.
using LoopBodyType =
    std::function<poplar::program::Sequence(poplar::Graph &graph, const TimeStepState &time, const RnnBatchwiseFlags &flags,
                                            std::vector<poplar::Tensor> &states, const RnnSlice &slice, std::vector<poplar::Tensor> &created,
                                            poplar::program::Sequence *initProg, const poplar::DebugNameAndId &name)>;

/// State `stateIndex` after each step is written to `output`; an invalid tensor keeps none.
struct StateSequence {
  poplar::Tensor output;
  std::size_t stateIndex = 0;

  StateSequence() = default;
  StateSequence(poplar::Tensor output_, std::size_t index) : output(std::move(output_)), stateIndex(index) {}
};

/// Runs the body for every step, from the last one backward if `reverse`, and returns the last states. All sequences have steps along
/// their first dimension, or a multiple of the steps. Shards do not change results.
std::vector<poplar::Tensor> Rnn(poplar::Graph &graph, const RnnParams &params, bool reverse, const std::vector<poplar::Tensor> &initState,
                                const StateSequence &stateSequence, const std::vector<poplar::Tensor> &inputs,
                                const poplar::Tensor *interimIn, poplar::Tensor *interimOut, const std::vector<poplar::Tensor> &outputs,
                                const std::vector<poplar::Tensor> &created, poplar::program::Sequence &prog, const LoopBodyType &loopFn,
                                unsigned numShards, poplar::OptionFlags &options, const poplar::DebugContext &context = {});

} // namespace rnn
} // namespace popnn

#endif
