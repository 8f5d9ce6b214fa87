// poputil/GraphFunction.hpp
#include <poputil/GraphFunction.hpp>
#include <poputil/exceptions.hpp>

namespace poputil::graphfn {

using poplar::DebugContext;
using poplar::DebugNameAndId;
using poplar::Graph;
using poplar::Tensor;
using poplar::program::Copy;
using poplar::program::Program;
using poplar::program::Sequence;

VoidFunction::VoidFunction(Graph &graph, Signature signature, NamedBody body, bool inlined, const DebugContext &context)
    : graph_(graph), signature_(std::move(signature)), inlined_(inlined), prog_(context) {
  for (const ArgSig &argument : signature_)
    parameters_.push_back(argument.type == CreatedArg ? Tensor() : graph.clone(argument.similarTensor, DebugContext(context, argument.debugName)));
  body(parameters_, prog_, DebugNameAndId(context.getPathName()));
  if (!inlined)
    function_ = graph.addFunction(prog_);
}

VoidFunction::VoidFunction(Graph &graph, Signature signature, Body body, bool inlined, const DebugContext &context)
    : VoidFunction(
          graph, std::move(signature), [&](std::vector<Tensor> &arguments, Sequence &prog, const DebugNameAndId &) { body(arguments, prog); },
          inlined, context) {}

void VoidFunction::operator()(std::vector<Tensor> &arguments, Sequence &prog, const DebugContext &context) {
  if (arguments.size() != signature_.size())
    throw poplibs_error("a graph function of " + std::to_string(signature_.size()) + " arguments was called with " +
                        std::to_string(arguments.size()));
  for (std::size_t i = 0; i < signature_.size(); ++i) {
    const ArgType type = signature_[i].type;
    if (type == InputArg || type == InOutArg)
      prog.add(Copy(arguments[i], parameters_[i], false, context));
    else if (type == CreatedArg)
      arguments[i] = graph_.clone(parameters_[i], DebugContext(context, signature_[i].debugName));
  }
  prog.add(inlined_ ? Program(prog_) : poplar::program::Call(function_, context));
  for (std::size_t i = 0; i < signature_.size(); ++i)
    if (signature_[i].type != InputArg)
      prog.add(Copy(parameters_[i], arguments[i], false, context));
}

ProgramFunction::ProgramFunction(Graph &graph, Signature signature, NamedBody body, bool inlined, const DebugContext &context)
    : function_(
          graph, std::move(signature),
          VoidFunction::NamedBody([&](std::vector<Tensor> &arguments, Sequence &prog, const DebugNameAndId &name) { prog.add(body(arguments, name)); }),
          inlined, context) {}

ProgramFunction::ProgramFunction(Graph &graph, Signature signature, Body body, bool inlined, const DebugContext &context)
    : function_(
          graph, std::move(signature), VoidFunction::Body([&](std::vector<Tensor> &arguments, Sequence &prog) { prog.add(body(arguments)); }), inlined,
          context) {}

Program ProgramFunction::operator()(std::vector<Tensor> &arguments, const DebugContext &context) {
  Sequence prog(context);
  function_(arguments, prog, context);
  return prog;
}

namespace {

Signature withResult(Signature signature) {
  signature.push_back(created("result"));
  return signature;
}

} // namespace

TensorFunction::TensorFunction(Graph &graph, Signature signature, NamedBody body, bool inlined, const DebugContext &context)
    : function_(
          graph, withResult(std::move(signature)),
          VoidFunction::NamedBody([&](std::vector<Tensor> &arguments, Sequence &prog, const DebugNameAndId &name) {
            std::vector<Tensor> own(arguments.begin(), arguments.end() - 1);
            const Tensor result = body(own, prog, name);
            own.push_back(result);
            arguments = own;
          }),
          inlined, context) {}

TensorFunction::TensorFunction(Graph &graph, Signature signature, Body body, bool inlined, const DebugContext &context)
    : TensorFunction(
          graph, std::move(signature),
          NamedBody([&](std::vector<Tensor> &arguments, Sequence &prog, const DebugNameAndId &) { return body(arguments, prog); }), inlined, context) {}

Tensor TensorFunction::operator()(std::vector<Tensor> &arguments, Sequence &prog, const DebugContext &context) {
  std::vector<Tensor> all = arguments;
  all.emplace_back();
  function_(all, prog, context);
  const Tensor result = all.back();
  all.pop_back();
  arguments = all;
  return result;
}

} // namespace poputil::graphfn
