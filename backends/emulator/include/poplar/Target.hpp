// The machine that a graph is built for.
#ifndef SNNC_POPLAR_TARGET_HPP
#define SNNC_POPLAR_TARGET_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include <poplar/EmulatorModel.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/TargetType.hpp>
#include <poplar/Type.hpp>
#include <poplar/exceptions.hpp>

namespace poplar {

namespace core {
struct TargetMembers;
}

class Target {
public:
  Target();
  static Target createCPUTarget(bool accurateHalf = true, unsigned numIpus = 1);
  /// `systemType`: "ipu1", "ipu2", "ipu21", or a system that contains them ("IPU-M2000", "IPU-POD16", "Bow-POD16", …).
  static Target createIPUTarget(unsigned numIPUs, const std::string &systemType, const OptionFlags &options = {});
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, const std::string &systemType, const OptionFlags &options = {});

  TargetType getTargetType() const { return type_; }
  std::string getTargetArchString() const { return arch_; }
  std::string getTargetSystemString() const { return arch_; }
  unsigned getNumIPUs() const { return numIPUs_; }
  unsigned getTilesPerIPU() const { return tilesPerIPU_; }
  unsigned getNumTiles() const { return numIPUs_ * tilesPerIPU_; }
  unsigned getNumWorkerContexts() const { return workers_; }
  unsigned getBytesPerTile() const { return bytesPerTile_; }
  std::uint64_t getMemoryBytes() const { return std::uint64_t(bytesPerTile_) * getNumTiles(); }
  unsigned getExchangeBytesPerCycle() const { return exchangeBytesPerCycle_; }
  double getTileClockFrequency() const { return clock_; }
  unsigned getDataPathWidth() const { return 64; }
  unsigned getFloatVectorWidth() const { return 2; }
  unsigned getHalfVectorWidth() const { return 4; }
  unsigned getVectorWidth(const Type &type) const;
  std::size_t getTypeSize(const Type &type) const { return type.size(); }
  unsigned getMinIPUSyncDelay() const { return unsigned(model_.syncCycles); }
  unsigned getMaxIPUSyncDelay() const { return unsigned(model_.syncCycles); }
  unsigned getGlobalSyncCycles() const { return unsigned(model_.globalSyncCycles); }
  bool hasGlobalExchange() const { return numIPUs_ > 1; }

  unsigned getTilesPerSharedExchangeBus() const { return 2; }
  bool supportsExchangeBusSharing() const { return true; }
  unsigned getNumStrideBits() const { return 10; }
  unsigned getRptCountMax() const { return 0xFFF; }
  unsigned getWeightsPerConvUnit(bool isHalf) const { return isHalf ? 16 : 8; }
  unsigned getConvUnitInputLoadElemsPerCycle(bool isHalf) const { return isHalf ? 8 : 4; }
  unsigned getNumConvUnits(bool isHalf, bool) const { return isHalf ? 16 : 8; }
  unsigned getConvUnitMaxPipelineDepth(const Type &partialsType) const { return partialsType == HALF ? 4 : 2; }
  unsigned getConvUnitCoeffLoadBytesPerCycle() const { return 32; }
  unsigned getMemcpyBytesPerCycle() const { return 8; }
  /// Address of the first element in a tile's memory, bytes.
  std::vector<std::size_t> getMemoryElementOffsets() const;
  /// Bounds of a type's values; throws poplar_error if T cannot represent them.
  template <class T> T getTypeLimitsMaxAs(const Type &type) const { return limitAs<T>(type, typeLimit(type, true)); }
  template <class T> T getTypeLimitsMinAs(const Type &type) const { return limitAs<T>(type, typeLimit(type, false)); }
  unsigned getAtomicStoreGranularity() const { return 4; }
  unsigned getInterleavedMemoryElementIndex() const { return 13; }
  bool operator==(const Target &other) const {
    return type_ == other.type_ && arch_ == other.arch_ && numIPUs_ == other.numIPUs_ && tilesPerIPU_ == other.tilesPerIPU_;
  }
  bool operator!=(const Target &other) const { return !(*this == other); }
  /// This machine with fewer tiles.
  Target createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const;

  /// Emulator extension: the parameters of the cost model.
  const EmulatorModel &getEmulatorModel() const { return model_; }
  void setTargetType(TargetType type) { type_ = type; }
  void setEmulatorModel(const EmulatorModel &model) { model_ = model; }

private:
  static long double typeLimit(const Type &type, bool most);
  template <class T> static T limitAs(const Type &type, long double limit) {
    if (limit < static_cast<long double>(std::numeric_limits<T>::lowest()) || limit > static_cast<long double>(std::numeric_limits<T>::max()))
      throw poplar_error("a bound of " + type.toString() + " does not fit the type that was asked for");
    return static_cast<T>(limit);
  }

  friend struct IPUModel;
  friend struct core::TargetMembers;
  TargetType type_ = TargetType::CPU;
  std::string arch_ = "cpu";
  unsigned numIPUs_ = 1, tilesPerIPU_ = 1, workers_ = 1;
  unsigned bytesPerTile_ = ~0u;
  unsigned exchangeBytesPerCycle_ = 4;
  double clock_ = 1e9;
  EmulatorModel model_;
};

/// Half-precision values in host memory.
void copyFloatToDeviceHalf(const Target &target, const float *src, void *dst, std::size_t elements);
void copyDeviceHalfToFloat(const Target &target, const void *src, float *dst, std::size_t elements);
void copyDoubleToDeviceHalf(const Target &target, const double *src, void *dst, std::size_t elements);
void copyDeviceHalfToDouble(const Target &target, const void *src, double *dst, std::size_t elements);
std::ostream &operator<<(std::ostream &os, const Target &target);

} // namespace poplar

#endif
