// A model of a machine, whose parameters can all be changed before createDevice().
#ifndef SNNC_POPLAR_IPU_MODEL_HPP
#define SNNC_POPLAR_IPU_MODEL_HPP

#include <string>
#include <vector>

#include <poplar/Device.hpp>
#include <poplar/GlobalExchangeConstraints.hpp>

namespace poplar {

struct IPUModel {
  /// `version`: "ipu1", "ipu2" or "ipu21".
  explicit IPUModel(const std::string &version = "ipu2");
  explicit IPUModel(const char *version) : IPUModel(std::string(version)) {}
  Device createDevice(const OptionFlags &options = {}, bool accurateHalf = true, unsigned deviceManagerId = ~0u) const;
  /// Whether both represent the same machine.
  bool operator==(const IPUModel &other) const { return createDevice().getTarget() == other.createDevice().getTarget(); }
  bool operator!=(const IPUModel &other) const { return !(*this == other); }

  static constexpr unsigned defaultSyncDelay = ~0u;
  std::string IPUVersion;
  unsigned numIPUs = 1;
  unsigned tilesPerIPU;
  unsigned numWorkerContexts = 6;
  unsigned memoryBytesPerTile;
  /// Hz.
  double tileClockFrequency;
  unsigned exchangeBytesPerCycle = 4;
  bool compileIPUCode = false;
  /// Delays of a barrier, tile cycles. Setting one of the two overrides the emulator's cost of a barrier.
  enum class RelativeSyncDelayType { AUTO, NO_DELAY };
  unsigned minIPUSyncDelay = defaultSyncDelay;
  RelativeSyncDelayType relativeSyncDelay = RelativeSyncDelayType::AUTO;
  unsigned globalSyncCycles = 600;
  unsigned tilesPerSuperTile = 2, memcpyBytesPerCycle = 8, instructionBytes = 4, interleavedMemoryElementIndex = 13;
  bool supportsSuperTileSendReceive = true;
  unsigned numStrideBits = 10;
  unsigned dataPathWidth = 64;
  unsigned fp16ConvUnitMaxPipelineDepth = 4, fp32ConvUnitMaxPipelineDepth = 2;
  unsigned fp16NumAccumulators = 2;
  unsigned fp16InFp16OutConvUnitsPerTile = 16, fp16InFp32OutConvUnitsPerTile = 16, fp32InFp32OutConvUnitsPerTile = 16;
  unsigned convUnitCoeffLoadBytesPerCycle = 32;
  unsigned rptCountMax = 0xFFF;
  bool supportsExchangeBusSharing = true;
  unsigned tilesPerSharedExchangeBus = 2;
  double globalExchangePacketBytes = 1024;
  /// Kept, without effect: the links of `emulator.wires` determine the cycles between IPUs.
  std::vector<GlobalExchangeConstraint> globalExchangeConstraints;
  /// Emulator extension: the rest of the cost model.
  EmulatorModel emulator;
};

} // namespace poplar

#endif
