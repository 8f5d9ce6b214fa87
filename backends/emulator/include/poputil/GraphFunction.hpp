// Parts of a program that are called with different tensors: the arguments are copied to and from the tensors the function was built with.
#ifndef SNNC_POPUTIL_GRAPH_FUNCTION_HPP
#define SNNC_POPUTIL_GRAPH_FUNCTION_HPP

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace poputil {
namespace graphfn {

enum ArgType { InputArg, OutputArg, InOutArg, CreatedArg };

/// An argument: a tensor like `similarTensor`; a created one is made by the function, and by each call.
struct ArgSig {
  ArgSig(ArgType argType, poplar::Tensor similar, std::string name) : type(argType), similarTensor(std::move(similar)), debugName(std::move(name)) {}
  ArgType type;
  poplar::Tensor similarTensor;
  std::string debugName;
};
using Signature = std::vector<ArgSig>;

inline ArgSig input(poplar::Tensor similar, std::string name = "") { return ArgSig(InputArg, std::move(similar), std::move(name)); }
inline ArgSig inout(poplar::Tensor similar, std::string name = "") { return ArgSig(InOutArg, std::move(similar), std::move(name)); }
inline ArgSig output(poplar::Tensor similar, std::string name = "") { return ArgSig(OutputArg, std::move(similar), std::move(name)); }
inline ArgSig created(std::string name = "") { return ArgSig(CreatedArg, poplar::Tensor(), std::move(name)); }

class VoidFunction {
public:
  using Body = std::function<void(std::vector<poplar::Tensor> &, poplar::program::Sequence &)>;
  using NamedBody = std::function<void(std::vector<poplar::Tensor> &, poplar::program::Sequence &, const poplar::DebugNameAndId &)>;
  /// `body` fills created arguments. If `inlined` is set, a call runs a copy of the program.
  VoidFunction(poplar::Graph &graph, Signature signature, Body body, bool inlined = false, const poplar::DebugContext &context = {});
  VoidFunction(poplar::Graph &graph, Signature signature, NamedBody body, bool inlined = false, const poplar::DebugContext &context = {});
  /// Throws poplibs_error if the number of arguments differs.
  void operator()(std::vector<poplar::Tensor> &arguments, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});

private:
  poplar::Graph &graph_;
  Signature signature_;
  bool inlined_;
  poplar::program::Sequence prog_;
  poplar::Function function_ = 0;
  std::vector<poplar::Tensor> parameters_;
};

/// A function whose body returns a program.
class ProgramFunction {
public:
  using Body = std::function<poplar::program::Program(std::vector<poplar::Tensor> &)>;
  using NamedBody = std::function<poplar::program::Program(std::vector<poplar::Tensor> &, const poplar::DebugNameAndId &)>;
  ProgramFunction(poplar::Graph &graph, Signature signature, Body body, bool inlined = false, const poplar::DebugContext &context = {});
  ProgramFunction(poplar::Graph &graph, Signature signature, NamedBody body, bool inlined = false, const poplar::DebugContext &context = {});
  poplar::program::Program operator()(std::vector<poplar::Tensor> &arguments, const poplar::DebugContext &context = {});

private:
  VoidFunction function_;
};

/// A function whose body returns a tensor.
class TensorFunction {
public:
  using Body = std::function<poplar::Tensor(std::vector<poplar::Tensor> &, poplar::program::Sequence &)>;
  using NamedBody = std::function<poplar::Tensor(std::vector<poplar::Tensor> &, poplar::program::Sequence &, const poplar::DebugNameAndId &)>;
  TensorFunction(poplar::Graph &graph, Signature signature, Body body, bool inlined = false, const poplar::DebugContext &context = {});
  TensorFunction(poplar::Graph &graph, Signature signature, NamedBody body, bool inlined = false, const poplar::DebugContext &context = {});
  poplar::Tensor operator()(std::vector<poplar::Tensor> &arguments, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});

private:
  VoidFunction function_;
};

} // namespace graphfn
} // namespace poputil

#endif
