// Registries of the operations, and of their Poplar implementations, that loaded libraries have registered.
#include <popart/opmanager.hpp>
#include <popart/popx/opxmanager.hpp>

namespace popart {

namespace {

std::map<OperatorIdentifier, OpManager::OpFactoryFunc> &operations() {
  static std::map<OperatorIdentifier, OpManager::OpFactoryFunc> all;
  return all;
}

std::map<OperatorIdentifier, popx::OpxManager::OpxFactoryFunc> &lowerings() {
  static std::map<OperatorIdentifier, popx::OpxManager::OpxFactoryFunc> all;
  return all;
}

} // namespace

void OpManager::registerOp(const OperatorIdentifier &id, OpFactoryFunc make) { operations()[id] = std::move(make); }

std::unique_ptr<Op> OpManager::create(const OperatorIdentifier &id, const Attributes &attributes) {
  const auto found = operations().find(id);
  if (found == operations().end())
    throw error("no loaded library registers the operation {}", id);
  const Op::Settings settings;
  return found->second(OpCreatorInfo{id, settings, attributes});
}

namespace popx {

void OpxManager::registerOpx(const OperatorIdentifier &id, OpxFactoryFunc make) { lowerings()[id] = std::move(make); }

std::unique_ptr<Opx> OpxManager::createOpx(Op *op, Devicex *device) {
  const auto found = lowerings().find(op->opid);
  if (found == lowerings().end())
    throw error("the operation {} has no Poplar implementation", op->opid);
  return found->second(op, device);
}

} // namespace popx
} // namespace popart
