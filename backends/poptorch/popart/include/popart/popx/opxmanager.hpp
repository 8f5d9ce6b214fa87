// Substitute for the registry of the Poplar implementations of operations.
#ifndef SNNC_POPART_POPX_OPXMANAGER_HPP
#define SNNC_POPART_POPX_OPXMANAGER_HPP

#include <popart/popx/opx.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace popart {
namespace popx {

class OpxManager {
public:
  using OpxFactoryFunc = std::function<std::unique_ptr<Opx>(Op *, Devicex *)>;

  static void registerOpx(const OperatorIdentifier &id, OpxFactoryFunc make);
  static std::unique_ptr<Opx> createOpx(Op *op, Devicex *device);
};

template <class OPX> class OpxCreator {
public:
  OpxCreator(const OperatorIdentifier &id) : OpxCreator(std::vector<OperatorIdentifier>{id}) {}
  OpxCreator(const std::vector<OperatorIdentifier> &ids) {
    for (const OperatorIdentifier &id : ids)
      OpxManager::registerOpx(id, [](Op *op, Devicex *device) -> std::unique_ptr<Opx> { return std::make_unique<OPX>(op, device); });
  }
};

} // namespace popx
} // namespace popart

#endif
