// Custom operations as the PopART user guide writes them, some of them wrong; and what views.hpp makes of an order.
#include "program.hpp"
#include "views.hpp"

#pragma GCC diagnostic error "-Wall"
#pragma GCC diagnostic error "-Wextra"

#include <popart/op.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/popx/opx.hpp>
#include <popart/popx/opxmanager.hpp>

#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>

namespace {

const popart::OperatorIdentifier TURN = {"test", "Turn", 1}, TURN_GRAD = {"test", "TurnGrad", 1};
const popart::OperatorIdentifier SPOIL = {"test", "Spoil", 1}, LOSE = {"test", "Lose", 1}, SHORTEN = {"test", "Shorten", 1};

class TurnGradOp : public popart::Op {
public:
  explicit TurnGradOp(const popart::Op &forward) : popart::Op(TURN_GRAD, forward.getSettings()) {}
  std::unique_ptr<popart::Op> clone() const final { return std::make_unique<TurnGradOp>(*this); }
  void setup() final { outInfo(0) = inInfo(1); }
  const std::vector<popart::GradInOutMapper> &gradInputInfo() const final {
    static const std::vector<popart::GradInOutMapper> found = {{0, 0, popart::GradOpInType::GradOut}, {1, 0, popart::GradOpInType::In}};
    return found;
  }
  const std::map<int, int> &gradOutToNonGradIn() const final {
    static const std::map<int, int> found = {{0, 0}};
    return found;
  }
  float getSubgraphValue() const final { return getLowSubgraphValue(); }
};

class AnyOp : public popart::Op {
public:
  using popart::Op::Op;
  std::unique_ptr<popart::Op> clone() const final { return std::make_unique<AnyOp>(*this); }
  void setup() final { outInfo(0) = inInfo(0); }
  std::vector<std::unique_ptr<popart::Op>> getGradOps() final {
    std::vector<std::unique_ptr<popart::Op>> found;
    if (opid == TURN)
      found.emplace_back(new TurnGradOp(*this));
    return found;
  }
  float getSubgraphValue() const final { return getLowSubgraphValue(); }
};

class TurnOpx : public popart::popx::Opx {
public:
  TurnOpx(popart::Op *op, popart::popx::Devicex *device) : Opx(op, device) { verifyOp<AnyOp>(op, {TURN, TURN_GRAD}); }
  void grow(poplar::program::Sequence &program) const final {
    const poplar::Tensor in = getInTensor(0), out = graph().clone(in, debugContext("out"));
    program.add(poplar::program::Copy(in.reverse(0), out));
    setOutTensor(0, out);
  }
};

class WrongOpx : public popart::popx::Opx {
public:
  using Opx::Opx;
  void grow(poplar::program::Sequence &program) const final {
    const poplar::Tensor in = getInTensor(0);
    if (op_p->opid == SPOIL)
      program.add(poplar::program::Copy(in.reverse(0), in));
    if (op_p->opid == SPOIL)
      setOutTensor(0, in);
    if (op_p->opid == SHORTEN)
      setOutTensor(0, in.slice(0, 1));
  }
};

const popart::OpCreator<AnyOp> operations({{ TURN, {} }, { SPOIL, {} }, { LOSE, {} }, { SHORTEN, {} }});
const popart::popx::OpxCreator<TurnOpx> turns({TURN, TURN_GRAD});
const popart::popx::OpxCreator<WrongOpx> wrong({SPOIL, LOSE, SHORTEN});

} // namespace

/// Copies `elements` numbers, 0 and up, to the places that `order` gives them, and what the places hold back through in_order().
extern "C" void views(const std::uint32_t *order, std::size_t places, std::size_t elements, float *placed, float *back) {
  poplar::IPUModel model("ipu2");
  model.tilesPerIPU = 1;
  const poplar::Device device = model.createDevice();
  poplar::Graph graph(device.getTarget());
  const snnc::Order given(order, order + places);
  const poplar::Tensor from = graph.addVariable(poplar::FLOAT, {elements}), to = graph.addVariable(poplar::FLOAT, {places});
  const poplar::Tensor seen = graph.addVariable(poplar::FLOAT, {elements});
  for (const poplar::Tensor &each : {from, to, seen})
    graph.setTileMapping(each, 0);
  poplar::program::Sequence program;
  for (const snnc::Patch &p : snnc::patches_of(given))
    program.add(poplar::program::Copy(snnc::patch_of(from, p), to.slice(p.place, p.place + p.rows * p.columns)));
  program.add(poplar::program::Copy(snnc::in_order(to, given, elements), seen));
  graph.createHostWrite("from", from);
  graph.createHostWrite("to", to);
  graph.createHostRead("placed", to);
  graph.createHostRead("seen", seen);
  poplar::Engine engine(graph, program);
  engine.load(device);
  std::vector<float> numbers(elements), nothing(places, -1.0f);
  for (std::size_t i = 0; i < elements; ++i)
    numbers[i] = static_cast<float>(i);
  engine.writeTensor("from", numbers.data(), numbers.data() + elements);
  engine.writeTensor("to", nothing.data(), nothing.data() + places);
  engine.run(0);
  engine.readTensor("placed", placed, placed + places);
  engine.readTensor("seen", back, back + elements);
}

extern "C" std::size_t patches(const std::uint32_t *order, std::size_t places) {
  return snnc::patches_of(snnc::Order(order, order + places)).size();
}
