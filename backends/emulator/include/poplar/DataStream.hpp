// A queue between host and device.
#ifndef SNNC_POPLAR_DATA_STREAM_HPP
#define SNNC_POPLAR_DATA_STREAM_HPP

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include <poplar/RemoteBuffer.hpp>
#include <poplar/Type.hpp>

namespace poplar {

enum class DataStreamType { HostToDeviceFIFO, DeviceToHostFIFO, HostToDeviceBuffer, DeviceToHostBuffer };

class DataStream {
public:
  DataStream() = default;
  /// The kinds as named in the documentation; the emulator has the two queues.
  DataStreamType kind() const { return toDevice ? DataStreamType::HostToDeviceFIFO : DataStreamType::DeviceToHostFIFO; }
  const std::string &handle() const { return name; }
  std::size_t numElements() const { return elements; }
  Type elementType() const { return type; }
  bool operator==(const DataStream &other) const { return id == other.id && name == other.name; }
  bool operator!=(const DataStream &other) const { return !(*this == other); }

  std::uint32_t id = ~0u;
  std::string name;
  Type type;
  std::size_t elements = 0;
  bool toDevice = true;
  /// Every replica receives the same data.
  bool broadcast = false;
};

inline std::ostream &operator<<(std::ostream &os, DataStreamType type) {
  constexpr const char *names[] = {"HostToDeviceFIFO", "DeviceToHostFIFO", "HostToDeviceBuffer", "DeviceToHostBuffer"};
  return os << names[int(type)];
}
inline std::ostream &operator<<(std::ostream &os, const DataStream &stream) {
  return os << stream.kind() << " " << stream.handle() << " " << stream.elementType().toString() << "[" << stream.numElements() << "]";
}

} // namespace poplar

#endif
