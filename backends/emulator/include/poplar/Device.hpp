// A machine that an engine can be loaded on.
#ifndef SNNC_POPLAR_DEVICE_HPP
#define SNNC_POPLAR_DEVICE_HPP

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <poplar/OptionFlags.hpp>
#include <poplar/StandardIncludes.hpp>
#include <poplar/Target.hpp>
#include <poplar/VersionInfo.hpp>
#include <poplar/exceptions.hpp>

namespace poplar {

class Device {
public:
  Device() = default;
  explicit Device(Target target, unsigned id = 0) : target_(std::move(target)), id_(id) {}
  static Device createCPUDevice(unsigned numIPUs = 1) { return Device(Target::createCPUTarget(true, numIPUs)); }
  /// A machine without hardware: all machines of the emulator.
  static Device createSimulatorDevice(const Target &target, const OptionFlags & = {}) { return Device(target); }
  unsigned getId() const { return id_; }
  const Target &getTarget() const { return target_; }
  bool attach() const { return true; }
  bool attach(const OptionFlags &) const { return true; }
  bool isAttached() const { return true; }
  void detach() const {}
  /// This machine with fewer tiles on each IPU.
  Device createVirtualDevice(unsigned tilesPerIPU) const {
    if (tilesPerIPU == 0 || tilesPerIPU > target_.getTilesPerIPU())
      throw invalid_machine_model("a virtual device of " + std::to_string(tilesPerIPU) + " tiles an IPU; there are " +
                                  std::to_string(target_.getTilesPerIPU()));
    return Device(target_.createVirtualTarget(target_.getNumIPUs(), tilesPerIPU), id_);
  }
  void reset() const {}
  unsigned getNumIPUs() const { return target_.getNumIPUs(); }
  std::vector<unsigned> getDriverIDs() const { return std::vector<unsigned>(target_.getNumIPUs(), id_); }
  std::map<std::string, std::string> getAttributes() const { return {}; }
  bool supportsRemoteBuffers() const { return target_.getTargetType() != TargetType::CPU; }

private:
  Target target_;
  unsigned id_ = 0;
};

} // namespace poplar

#endif
