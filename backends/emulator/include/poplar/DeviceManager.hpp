// The machines of this host. The emulator has no IPU: it offers models of one.
#ifndef SNNC_POPLAR_DEVICE_MANAGER_HPP
#define SNNC_POPLAR_DEVICE_MANAGER_HPP

#include <vector>

#include <poplar/Device.hpp>

namespace poplar {

class DeviceManager {
public:
  static DeviceManager createDeviceManager() { return {}; }
  /// TargetType::IPU gives none; IPU_MODEL and CPU one each.
  std::vector<Device> getDevices(TargetType type, unsigned requiredNumIPUs, const OptionFlags &options = {}) const;
  std::vector<Device> getDevices(const OptionFlags &options = {}) const;
  std::size_t getNumDevices() const { return getDevices().size(); }
};

} // namespace poplar

#endif
