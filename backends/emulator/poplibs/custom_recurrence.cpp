// popnn/Rnn.hpp: a loop over steps whose body the program provides.
#include <popnn/Rnn.hpp>

#include <popops/DynamicSlice.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "recurrent.hpp"

namespace popnn {
namespace rnn {

using namespace poplibs;
using poplar::program::Copy;
using poplar::program::Sequence;

namespace {

/// A sequence of which every step has the same number of rows of the first dimension.
class Stepped {
public:
  Stepped(poplar::Graph &graph, const Tensor &whole, std::size_t steps, const char *what, const std::string &name)
      : graph(graph), whole(whole), name(name + "/" + what) {
    if (whole.rank() == 0 || whole.dim(0) == 0 || whole.dim(0) % steps != 0)
      throw poputil::poplibs_error(this->name + ": a tensor of shape " + whole.shapeToString() + " is not a sequence of " +
                                   std::to_string(steps) + " steps");
    std::vector<std::size_t> shape = whole.shape();
    shape[0] /= steps;
    shape.insert(shape.begin(), steps);
    bySteps = whole.reshape(shape);
  }
  /// [rows, ...]
  Tensor read(const Tensor &index, Sequence &prog) const {
    return popops::dynamicSlice(graph, bySteps, index, {0}, {1}, prog, name).squeeze({0});
  }
  void write(const Tensor &value, const Tensor &index, Sequence &prog) const {
    popops::dynamicUpdate(graph, bySteps, value.reshape(room()).expand({0}), index, {0}, {1}, prog, name);
  }
  /// Room for a step.
  Tensor variable() const {
    const Tensor t = graph.addVariable(whole.elementType(), room(), name);
    poputil::mapTensorLinearly(graph, t);
    return t;
  }

private:
  poplar::Graph &graph;
  Tensor whole, bySteps;
  std::string name;

  std::vector<std::size_t> room() const {
    const std::vector<std::size_t> shape = bySteps.shape();
    return {shape.begin() + 1, shape.end()};
  }
};

/// Steps of one row lose their first dimension.
Tensor withoutSingleRow(const Tensor &step) { return step.dim(0) == 1 ? step.squeeze({0}) : step; }

std::vector<Stepped> stepped(poplar::Graph &graph, const std::vector<Tensor> &tensors, std::size_t steps, const char *what,
                             const std::string &name) {
  std::vector<Stepped> result;
  for (const Tensor &t : tensors)
    result.emplace_back(graph, t, steps, what, name);
  return result;
}

void checkArguments(const RnnParams &params, const std::vector<Tensor> &states, const StateSequence &sequence, unsigned shards,
                    const poplar::OptionFlags &options, const std::string &name) {
  if (params.variableTimeSteps())
    throw poputil::poplibs_error(name + ": the emulator runs every sequence to its last step, so varTimeSteps must be left out");
  if (params.maxTimeSteps == 0 || shards == 0 || shards > params.maxTimeSteps)
    throw poputil::poplibs_error(name + ": " + std::to_string(shards) + " shards of a sequence of " + std::to_string(params.maxTimeSteps) +
                                 " steps");
  if (sequence.output.valid() && sequence.stateIndex >= states.size())
    throw poputil::poplibs_error(name + ": state " + std::to_string(sequence.stateIndex) + " of " + std::to_string(states.size()) +
                                 " is to be stored");
  for (const auto &option : options)
    if (option.first != "codeReuse")
      throw poplar::invalid_option(name + ": no option '" + option.first + "'");
}

} // namespace

std::vector<Tensor> Rnn(poplar::Graph &graph, const RnnParams &params, bool reverse, const std::vector<Tensor> &initState,
                        const StateSequence &stateSequence, const std::vector<Tensor> &inputs, const Tensor *interimIn, Tensor *interimOut,
                        const std::vector<Tensor> &outputs, const std::vector<Tensor> &created, Sequence &prog, const LoopBodyType &loopFn,
                        unsigned numShards, poplar::OptionFlags &options, const poplar::DebugContext &context) {
  const std::string name = contextName(context, "rnn");
  const std::size_t steps = params.maxTimeSteps;
  requireLibrary(graph, "popnn");
  addLibrary(graph, "popops");
  checkArguments(params, initState, stateSequence, numShards, options, name);
  std::vector<Tensor> states;
  for (const Tensor &initial : initState)
    states.push_back(duplicate(graph, initial, prog, name + "/state"));
  const std::vector<Stepped> read = stepped(graph, inputs, steps, "input", name), written = stepped(graph, outputs, steps, "output", name),
                             made = stepped(graph, created, steps, "created", name);
  const std::vector<Stepped> before = stepped(graph, interimIn ? std::vector<Tensor>{*interimIn} : std::vector<Tensor>{}, steps, "interimIn", name),
                             after = stepped(graph, interimOut ? std::vector<Tensor>{*interimOut} : std::vector<Tensor>{}, steps, "interimOut", name);
  std::vector<Stepped> kept;
  if (stateSequence.output.valid())
    kept.emplace_back(graph, stateSequence.output, steps, "states", name);

  TimeStepState time;
  time.begin = graph.addConstant(poplar::UNSIGNED_INT, {1}, 0u, name + "/begin");
  graph.setTileMapping(time.begin, 0);
  Sequence first(name + "/begin"), loop(name);
  overSteps(graph, steps, reverse, name, loop, [&](const Tensor &index, Sequence &round) {
    RnnSlice slice;
    for (const Stepped &sequence : read)
      slice.inputs.push_back(withoutSingleRow(sequence.read(index, round)));
    for (const Stepped &sequence : before)
      slice.interimIn = withoutSingleRow(sequence.read(index, round));
    for (const Stepped &sequence : after)
      slice.interimOut = withoutSingleRow(sequence.variable());
    for (const Stepped &sequence : written)
      slice.outputs.push_back(sequence.variable());
    time.counter = index;
    std::vector<Tensor> fresh(made.size());
    round.add(loopFn(graph, time, RnnBatchwiseFlags{}, states, slice, fresh, &first, poplar::DebugNameAndId(name)));
    for (std::size_t i = 0; i < written.size(); ++i)
      written[i].write(slice.outputs[i], index, round);
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (i >= fresh.size() || !fresh[i].valid())
        throw poputil::poplibs_error(name + ": the loop's body made no tensor " + std::to_string(i) + " of " + std::to_string(made.size()));
      made[i].write(fresh[i], index, round);
    }
    for (const Stepped &sequence : after)
      sequence.write(slice.interimOut, index, round);
    for (const Stepped &sequence : kept)
      sequence.write(states[stateSequence.stateIndex], index, round);
  });
  prog.add(first);
  prog.add(loop);
  return states;
}

} // namespace rnn
} // namespace popnn
