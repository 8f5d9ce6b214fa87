// A model of a machine, every number of which can be changed before createDevice().
#ifndef SNNC_POPLAR_IPU_MODEL_HPP
#define SNNC_POPLAR_IPU_MODEL_HPP

#include <string>

#include <poplar/Device.hpp>

namespace poplar {

struct IPUModel {
  /// `version`: "ipu1", "ipu2" or "ipu21".
  explicit IPUModel(const std::string &version = "ipu2");
  explicit IPUModel(const char *version) : IPUModel(std::string(version)) {}
  Device createDevice(const OptionFlags &options = {}, bool accurateHalf = true) const;

  std::string IPUVersion;
  unsigned numIPUs = 1;
  unsigned tilesPerIPU;
  unsigned numWorkerContexts = 6;
  unsigned memoryBytesPerTile;
  /// Hz.
  double tileClockFrequency;
  unsigned exchangeBytesPerCycle = 4;
  bool compileIPUCode = false;
  /// Emulator extension: the rest of the cost model.
  EmulatorModel emulator;
};

} // namespace poplar

#endif
