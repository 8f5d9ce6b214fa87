// The machines of this host. An emulated IPU replaces hardware.
#ifndef SNNC_POPLAR_DEVICE_MANAGER_HPP
#define SNNC_POPLAR_DEVICE_MANAGER_HPP

#include <vector>

#include <poplar/Device.hpp>

namespace poplar {

class DeviceManager {
public:
  static DeviceManager createDeviceManager() { return {}; }
  /// One of each kind. The numbers of IPUs are powers of two; $SNNC_EMULATED_IPU names the kind (ipu1, ipu2, ipu21), or "none".
  std::vector<Device> getDevices(TargetType type, unsigned requiredNumIPUs, const OptionFlags &options = {}) const;
  std::vector<Device> getDevices(const OptionFlags &options = {}) const;
  Device getDevice(unsigned deviceManagerId, const OptionFlags &options = {}) const;
  Device acquireAvailableDevice(unsigned requiredNumIPUs, const OptionFlags &options = {}) const;
  bool tryAcquireAvailableDevice(TargetType type, unsigned requiredNumIPUs, Device &device, const OptionFlags &options = {}) const;
  std::size_t getNumDevices() const { return getDevices().size(); }
};

} // namespace poplar

#endif
