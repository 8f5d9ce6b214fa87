// Substitute for popart::popx::Opx, the Poplar implementation of an operation.
#ifndef SNNC_POPART_POPX_OPX_HPP
#define SNNC_POPART_POPX_OPX_HPP

#include <popart/op.hpp>
#include <popart/popx/devicex.hpp>
#include <popart/popx/inputcreatortype.hpp>

#include <poplar/DebugContext.hpp>
#include <poplar/Program.hpp>

#include <set>
#include <string>
#include <vector>

namespace popart {
namespace popx {

class Opx {
public:
  Opx(Op *op, Devicex *device) : op_p(op), dv_p(device) {}
  virtual ~Opx() = default;

  virtual void grow(poplar::program::Sequence &) const = 0;

  /// Whether the operation lays out an input itself, in createInput(); mustExistBeforeCreate() then names the tensors needed for that.
  virtual InputCreatorType getInputCreatorType(InIndex) const { return InputCreatorType::Deadend; }
  virtual poplar::Tensor createInput(InIndex index, const poplar::DebugNameAndId &) const {
    throw error("{} cannot create its input {}", op_p->opid, index);
  }
  virtual std::set<TensorId> mustExistBeforeCreate(int index) const {
    throw error("{} cannot say which tensors must exist to create its input {}", op_p->opid, index);
  }

  poplar::Graph &graph() const { return dv_p->graph; }
  const poplar::Tensor &getInTensor(InIndex index) const { return dv_p->inputs.at(index); }
  const poplar::Tensor &getOutTensor(OutIndex index) const { return dv_p->outputs.at(index); }
  void setOutTensor(OutIndex index, const poplar::Tensor &tensor) const {
    if (tensor.shape() != op_p->outInfo(index).shape_szt())
      throw error("{} returns output {} with a shape other than that of setup()", op_p->opid, index);
    dv_p->outputs[index] = tensor;
  }
  poplar::DebugContext debugContext(const std::string &name = "") const { return poplar::DebugContext(name); }

  template <class OP> OP &getOp() const {
    OP *found = dynamic_cast<OP *>(op_p);
    if (found == nullptr)
      throw error("{} has an unexpected class", op_p->opid);
    return *found;
  }
  template <class OP> void verifyOp(Op *op, const OperatorIdentifier &id) {
    if (op->opid.domain != id.domain || op->opid.type != id.type)
      throw error("{} cannot be created from {}", id, op->opid);
  }
  template <class OP> void verifyOp(Op *op, std::vector<OperatorIdentifier> ids) {
    for (const OperatorIdentifier &id : ids)
      if (op->opid == id)
        return;
    throw error("{} is not one of the expected operations", op->opid);
  }

  Op *op_p;

protected:
  Devicex *dv_p;
};

} // namespace popx
} // namespace popart

#endif
