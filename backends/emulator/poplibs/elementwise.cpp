#include "elementwise.hpp"

#include <algorithm>

#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include "evaluate.hpp"

namespace poplibs {

using poplar::core::Direction;

namespace {

bool sameView(const Tensor &a, const Tensor &b) { return a.flatten() == b.flatten(); }

std::string typeNameOf(const ElementProgram &program, bool inPlace) {
  std::string name = "popops::MapElements<";
  for (const Type &type : program.inputs)
    name += type.toString() + ",";
  return name + program.output.toString() + ">[" + program.text + (inPlace ? "]=" : "]");
}

/// The vertex type of a program. In place, its output is also its first operand.
std::string vertexType(Graph &graph, const ElementProgram &program, bool inPlace) {
  const std::string name = typeNameOf(program, inPlace);
  if (hasType(graph, name))
    return name;
  std::vector<FieldSpec> fields{{"out", Direction::Output, program.output}};
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    fields.push_back({"in" + std::to_string(i + 1), Direction::Input, program.inputs[i]});
  builtinType(graph, name, fields, elementKind, program, 120 + 60 * unsigned(program.code.size()));
  return name;
}

} // namespace

void addElementWork(Graph &graph, poplar::ComputeSet computeSet, const popops::expr::Expr &expression, const std::vector<Tensor> &inputs,
                    const Tensor &out, const std::string &what) {
  std::vector<Type> types;
  for (const Tensor &t : inputs)
    types.push_back(t.elementType());
  const ElementProgram program = compileExpression(expression, types);
  if (program.output != out.elementType())
    throw poputil::poplibs_error(what + ": the expression gives " + program.output.toString() + ", the output '" + out.getName() +
                                 "' is of type " + out.elementType().toString());
  const Tensor flat = out.flatten();
  std::vector<Tensor> flatInputs;
  bool inPlace = false;
  for (const Tensor &t : inputs) {
    flatInputs.push_back(t.flatten());
    inPlace = inPlace || flatInputs.back() == flat;
  }
  const std::string type = vertexType(graph, program, inPlace);
  const std::size_t grain = std::max<std::size_t>(1, 8 / out.elementType().size());
  for (const TileWork &work : workOf(graph, flat, what)) {
    const poplar::VertexRef v = graph.addVertex(computeSet, type);
    graph.connect(v["out"], pick(flat, work.intervals));
    for (std::size_t i = 0; i < flatInputs.size(); ++i)
      graph.connect(v["in" + std::to_string(i + 1)],
                    flatInputs[i].numElements() == 1 ? flatInputs[i] : pick(flatInputs[i], work.intervals));
    graph.setTileMapping(v, work.tile);
    graph.setPerfEstimate(v, sharedCycles(graph, elementCycles(program, workerShare(graph, work.elements, grain), inPlace)));
  }
}

std::vector<std::size_t> broadcastShape(const std::vector<Tensor> &tensors) {
  std::vector<std::size_t> shape;
  for (const Tensor &t : tensors) {
    const std::vector<std::size_t> &s = t.shape();
    if (s.size() > shape.size())
      shape.insert(shape.begin(), s.size() - shape.size(), 1);
    for (std::size_t i = 0; i < s.size(); ++i) {
      std::size_t &d = shape[shape.size() - s.size() + i];
      if (d != s[i] && d != 1 && s[i] != 1)
        throw poputil::poplibs_error("shapes " + tensors[0].shapeToString() + " and " + t.shapeToString() + " cannot be broadcast together");
      d = d == 1 ? s[i] : d;
    }
  }
  return shape;
}

Tensor broadcastTo(const Tensor &tensor, const std::vector<std::size_t> &shape) {
  if (tensor.shape() == shape || tensor.numElements() == 1)
    return tensor;
  Tensor result = tensor;
  while (result.rank() < shape.size())
    result = result.expand({0});
  for (unsigned d = 0; d < shape.size(); ++d)
    if (result.dim(d) == 1 && shape[d] != 1)
      result = result.broadcast(unsigned(shape[d]), d);
  if (result.shape() != shape)
    throw poputil::poplibs_error("a tensor of shape " + tensor.shapeToString() + " cannot be broadcast to the output's shape");
  return result;
}

Tensor outputLike(Graph &graph, Type type, const std::vector<std::size_t> &shape, const std::vector<Tensor> &inputs, const std::string &name) {
  const Tensor *best = nullptr;
  std::size_t bestTiles = 0;
  for (const Tensor &t : inputs) {
    bool complete = true;
    if (t.shape() != shape || t.containsAliases())
      continue;
    const Graph::TileToTensorMapping mapping = graph.getTileMapping(t, &complete);
    const std::size_t tiles = std::size_t(std::count_if(mapping.begin(), mapping.end(), [](const auto &m) { return !m.empty(); }));
    if (complete && tiles > bestTiles) {
      best = &t;
      bestTiles = tiles;
    }
  }
  if (best)
    return graph.clone(type, *best, name);
  const Tensor out = graph.addVariable(type, shape, name);
  poputil::mapTensorLinearly(graph, out);
  return out;
}

Tensor duplicate(Graph &graph, const Tensor &tensor, poplar::program::Sequence &prog, const std::string &name) {
  const Tensor copy = outputLike(graph, tensor.elementType(), tensor.shape(), {tensor}, name);
  prog.add(poplar::program::Copy(tensor, copy));
  return copy;
}

void mapTo(Graph &graph, const popops::expr::Expr &expression, const std::vector<Tensor> &tensors, const Tensor &out,
           poplar::program::Sequence &prog, const std::string &name) {
  if (out.containsAliases())
    throw poputil::poplibs_error(name + ": the output '" + out.getName() + "' holds an element twice");
  std::vector<Tensor> inputs;
  for (const Tensor &t : tensors) {
    Tensor input = broadcastTo(t, out.shape());
    // Otherwise another vertex would write elements that this one reads.
    if (input.intersectsWith(out) && !sameView(input, out))
      input = broadcastTo(duplicate(graph, t, prog, name + "/copy"), out.shape());
    inputs.push_back(input);
  }
  if (out.numElements() == 0)
    return;
  const poplar::ComputeSet computeSet = graph.addComputeSet(name);
  addElementWork(graph, computeSet, expression, inputs, out, name);
  prog.add(poplar::program::Execute(computeSet));
}

} // namespace poplibs

namespace popops {

Tensor map(Graph &graph, const expr::Expr &expression, const std::vector<Tensor> &tensors, Sequence &prog, const DebugContext &context,
           const OptionFlags &) {
  poplibs::requireLibrary(graph, "popops");
  std::vector<poplar::Type> types;
  for (const Tensor &t : tensors)
    types.push_back(t.elementType());
  const poplar::Type type = poplibs::compileExpression(expression, types).output;
  const std::string name = poplibs::contextName(context, "map");
  const Tensor out = poplibs::outputLike(graph, type, poplibs::broadcastShape(tensors), tensors, name + "/Out");
  poplibs::mapTo(graph, expression, tensors, out, prog, name);
  return out;
}

void mapInPlace(Graph &graph, const expr::Expr &expression, const std::vector<Tensor> &tensors, Sequence &prog, const DebugContext &context,
                const OptionFlags &) {
  poplibs::requireLibrary(graph, "popops");
  poplibs::mapTo(graph, expression, tensors, tensors.at(0), prog, poplibs::contextName(context, "map"));
}

void mapWithOutput(Graph &graph, const expr::Expr &expression, const std::vector<Tensor> &tensors, const Tensor &out, Sequence &prog,
                   const DebugContext &context, const OptionFlags &) {
  poplibs::requireLibrary(graph, "popops");
  poplibs::mapTo(graph, expression, tensors, out, prog, poplibs::contextName(context, "map"));
}

} // namespace popops
