// Targets, devices and models.
#include <poplar/DeviceManager.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/exceptions.hpp>

#include <poplar/HalfFloat.hpp>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "halves.hpp"

namespace poplar {

namespace {

struct Machine {
  const char *name;
  unsigned tiles, kibibytes;
  double clock;
};
constexpr Machine machines[] = {{"ipu1", 1216, 256, 1.6e9}, {"ipu2", 1472, 624, 1.33e9}, {"ipu21", 1472, 624, 1.85e9}};

const Machine &findMachine(const std::string &version) {
  for (const Machine &m : machines)
    if (version == m.name)
      return m;
  throw invalid_machine_model("no IPU version '" + version + "'; there are ipu1, ipu2 and ipu21");
}

/// The IPU of a system, from the prefix of the system's name.
std::string machineOf(const std::string &system) {
  std::string name;
  for (const char c : system)
    name += char(std::tolower(static_cast<unsigned char>(c)));
  const auto begins = [&](const char *prefix) { return name.rfind(prefix, 0) == 0; };
  return begins("bow") ? "ipu21" : begins("ipu-m2000") || begins("ipu-pod") || begins("ipu-machine") ? "ipu2" : system;
}

} // namespace

Target::Target() = default;

Target Target::createCPUTarget(bool, unsigned numIpus) {
  Target target;
  target.numIPUs_ = numIpus;
  return target;
}

Target Target::createIPUTarget(unsigned numIPUs, const std::string &systemType, const OptionFlags &) {
  IPUModel model(machineOf(systemType));
  model.numIPUs = numIPUs;
  return model.createDevice().getTarget();
}

Target Target::createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, const std::string &systemType, const OptionFlags &) {
  IPUModel model(machineOf(systemType));
  model.numIPUs = numIPUs;
  model.tilesPerIPU = tilesPerIPU;
  return model.createDevice().getTarget();
}

std::ostream &operator<<(std::ostream &os, const Target &target) {
  return os << target.getTargetType() << " " << target.getTargetArchString() << " " << target.getNumIPUs() << "x" << target.getTilesPerIPU();
}

std::vector<std::size_t> Target::getMemoryElementOffsets() const {
  constexpr std::size_t base = 0x4c000, element = 16 * 1024;
  std::vector<std::size_t> offsets;
  for (std::size_t at = 0; at < bytesPerTile_ && type_ != TargetType::CPU; at += element)
    offsets.push_back(base + at);
  return offsets;
}

long double Target::typeLimit(const Type &type, bool most) {
  if (type == FLOAT || type == HALF)
    return (most ? 1 : -1) * (type == FLOAT ? static_cast<long double>(std::numeric_limits<float>::max()) : 65504.L);
  if (type == BOOL)
    return most;
  if (!type.isIntegral())
    throw type_error("the values of type " + type.toString() + " have no bounds that are known without metadata");
  const long double range = std::ldexp(1.L, int(8 * type.size()) - (type.isSigned() ? 1 : 0));
  return most ? range - 1 : type.isSigned() ? -range : 0;
}

unsigned Target::getVectorWidth(const Type &type) const { return type.size() >= 8 ? 1 : unsigned(8 / type.size()); }

IPUModel::IPUModel(const std::string &version) : IPUVersion(version) {
  const Machine &machine = findMachine(version);
  tilesPerIPU = machine.tiles;
  memoryBytesPerTile = machine.kibibytes * 1024;
  tileClockFrequency = machine.clock;
}

Device IPUModel::createDevice(const OptionFlags &, bool, unsigned) const {
  if (numIPUs == 0 || tilesPerIPU == 0 || numWorkerContexts == 0 || exchangeBytesPerCycle == 0)
    throw invalid_machine_model("an IPU model needs at least one IPU, tile, worker and exchange byte a cycle");
  Target target;
  target.type_ = TargetType::IPU_MODEL;
  target.arch_ = IPUVersion;
  target.numIPUs_ = numIPUs;
  target.tilesPerIPU_ = tilesPerIPU;
  target.workers_ = numWorkerContexts;
  target.bytesPerTile_ = memoryBytesPerTile;
  target.exchangeBytesPerCycle_ = exchangeBytesPerCycle;
  target.clock_ = tileClockFrequency;
  target.model_ = emulator;
  if (minIPUSyncDelay != defaultSyncDelay)
    target.model_.syncCycles = minIPUSyncDelay;
  return Device(target);
}

namespace {

/// The IPU that replaces hardware: $SNNC_EMULATED_IPU ("ipu1", "ipu2", "ipu21" or "none").
std::string emulatedIpu() {
  const char *chosen = std::getenv("SNNC_EMULATED_IPU");
  return chosen && *chosen ? chosen : "ipu2";
}

constexpr unsigned mostIpus = 64;

Device emulatedDevice(unsigned ipus, unsigned id) {
  IPUModel model(emulatedIpu());
  model.numIPUs = ipus;
  Target target = model.createDevice().getTarget();
  target.setTargetType(TargetType::IPU);
  return Device(target, id);
}

} // namespace

std::vector<Device> DeviceManager::getDevices(TargetType type, unsigned requiredNumIPUs, const OptionFlags &) const {
  if (requiredNumIPUs == 0)
    return {};
  if (type == TargetType::CPU)
    return {Device::createCPUDevice()};
  if (type == TargetType::IPU) {
    if (emulatedIpu() == "none" || requiredNumIPUs > mostIpus || (requiredNumIPUs & (requiredNumIPUs - 1)) != 0)
      return {};
    return {emulatedDevice(requiredNumIPUs, 0)};
  }
  IPUModel model;
  model.numIPUs = requiredNumIPUs;
  return {model.createDevice()};
}

std::vector<Device> DeviceManager::getDevices(const OptionFlags &) const {
  const std::vector<Device> found = getDevices(TargetType::IPU, 1);
  return found.empty() ? getDevices(TargetType::IPU_MODEL, 1) : found;
}

Device DeviceManager::getDevice(unsigned deviceManagerId, const OptionFlags &) const {
  const std::vector<Device> all = getDevices();
  if (deviceManagerId >= all.size())
    throw poplar_error("there is no device " + std::to_string(deviceManagerId));
  return all[deviceManagerId];
}

bool DeviceManager::tryAcquireAvailableDevice(TargetType type, unsigned requiredNumIPUs, Device &device, const OptionFlags &options) const {
  const std::vector<Device> found = getDevices(type, requiredNumIPUs, options);
  if (found.empty())
    return false;
  device = found[0];
  return true;
}

Device DeviceManager::acquireAvailableDevice(unsigned requiredNumIPUs, const OptionFlags &options) const {
  Device device;
  if (!tryAcquireAvailableDevice(TargetType::IPU, requiredNumIPUs, device, options))
    throw poplar_error("no device of " + std::to_string(requiredNumIPUs) + " IPUs");
  return device;
}

Target Target::createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const {
  Target part = *this;
  part.numIPUs_ = numIPUs;
  part.tilesPerIPU_ = tilesPerIPU;
  return part;
}

void copyFloatToDeviceHalf(const Target &, const float *src, void *dst, std::size_t elements) {
  core::narrow(src, dst, elements);
}

void copyDeviceHalfToFloat(const Target &, const void *src, float *dst, std::size_t elements) {
  core::widen(src, dst, elements);
}

} // namespace poplar
