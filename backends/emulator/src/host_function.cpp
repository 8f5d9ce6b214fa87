// Host functions: each argument is a stream, and the last input, or the first output, calls the function.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/exceptions.hpp>

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "engine_data.hpp"

namespace poplar {

namespace {

std::string argumentName(const std::string &handle, const char *kind, std::size_t number) {
  return handle + ":" + kind + std::to_string(number);
}

/// The bytes of each argument, by the streams of a graph.
std::vector<std::vector<char>> buffersOf(const core::GraphData &graph, const std::string &handle, const char *kind) {
  std::vector<std::vector<char>> buffers;
  for (const DataStream &stream : graph.streams)
    if (stream.name == argumentName(handle, kind, buffers.size()))
      buffers.emplace_back(stream.elements * stream.type.size());
  return buffers;
}

/// Arguments of one replica between two calls.
struct PendingCall {
  HostCallbackHandle callback;
  std::vector<std::vector<char>> inputs, outputs;

  void run() {
    std::vector<const void *> in;
    std::vector<void *> out;
    for (const std::vector<char> &buffer : inputs)
      in.push_back(buffer.data());
    for (std::vector<char> &buffer : outputs)
      out.push_back(buffer.data());
    callback(in, out);
  }
};

void requireArguments(const HostFunction &function, const char *kind, std::size_t expected, std::size_t given) {
  if (expected != given)
    throw graph_connection_error("Call of host function '" + function.name + "': it has " + std::to_string(expected) + " " + kind + ", the call has " +
                                 std::to_string(given));
}

} // namespace

HostFunction Graph::addHostFunction(const std::string &handle, ArrayRef<HostFunctionArgument> inputs, ArrayRef<HostFunctionArgument> outputs) {
  if (inputs.empty() && outputs.empty())
    throw graph_object_creation_error("host function '" + handle + "' has neither inputs nor outputs");
  HostFunction function;
  function.name = handle;
  for (const HostFunctionArgument &argument : inputs)
    function.inputs.push_back(addDeviceToHostFIFO(argumentName(handle, "input", function.inputs.size()), std::get<0>(argument), std::get<1>(argument)));
  for (const HostFunctionArgument &argument : outputs)
    function.outputs.push_back(addHostToDeviceFIFO(argumentName(handle, "output", function.outputs.size()), std::get<0>(argument), std::get<1>(argument)));
  return function;
}

program::Call::Call(const HostFunction &function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs, const DebugContext &context) {
  requireArguments(function, "inputs", function.inputs.size(), inputs.size());
  requireArguments(function, "outputs", function.outputs.size(), outputs.size());
  Sequence transfers(context);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    transfers.add(Copy(inputs[i], function.inputs[i], false, context));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    transfers.add(Copy(function.outputs[i], outputs[i], false, context));
  data_ = transfers.data();
}

void Engine::connectHostFunction(const std::string &handle, unsigned replica, HostCallbackHandle callback) {
  const core::GraphData &graph = *data_->graph;
  const auto call = std::make_shared<PendingCall>(
      PendingCall{std::move(callback), buffersOf(graph, handle, "input"), buffersOf(graph, handle, "output")});
  const std::size_t inputs = call->inputs.size(), outputs = call->outputs.size();
  if (inputs == 0 && outputs == 0)
    throw stream_connection_error("there is no host function '" + handle + "'");
  for (std::size_t i = 0; i < inputs; ++i)
    connectStreamToCallback(argumentName(handle, "input", i), replica, [call, i, inputs, outputs](void *data) {
      std::memcpy(call->inputs[i].data(), data, call->inputs[i].size());
      if (outputs == 0 && i + 1 == inputs)
        call->run();
    });
  for (std::size_t i = 0; i < outputs; ++i)
    connectStreamToCallback(argumentName(handle, "output", i), replica, [call, i](void *data) {
      if (i == 0)
        call->run();
      std::memcpy(data, call->outputs[i].data(), call->outputs[i].size());
    });
}

void Engine::reportTiming(const std::string &timerName, const TimerTimePoint &start, const TimerTimePoint &end) {
  const char *level = std::getenv("POPLAR_LOG_LEVEL");
  const std::string asked = level ? level : "";
  if (asked == "INFO" || asked == "DEBUG" || asked == "TRACE")
    std::clog << timerName << ": " << reportTiming(start, end) << "\n";
}

std::string Engine::reportTiming(const TimerTimePoint &start, const TimerTimePoint &end) {
  std::ostringstream text;
  text << std::chrono::duration<double>(end.time - start.time).count() << " s";
  return text.str();
}

} // namespace poplar
