// Memory outside the IPUs (streaming memory) that a program reads and writes in rows.
#ifndef SNNC_POPLAR_REMOTE_BUFFER_HPP
#define SNNC_POPLAR_REMOTE_BUFFER_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include <poplar/Type.hpp>

namespace poplar {

/// `getRepeats()` rows of `numElements()` elements each.
class RemoteBuffer {
public:
  RemoteBuffer() = default;
  const std::string &handle() const { return name; }
  std::size_t numElements() const { return elements; }
  std::size_t getRepeats() const { return repeats; }
  Type elementType() const { return type; }
  bool isRearrangeOnHost() const { return rearranges; }
  bool isOptimisedForMemory() const { return small; }
  bool operator==(const RemoteBuffer &other) const { return id == other.id && name == other.name; }
  bool operator!=(const RemoteBuffer &other) const { return !(*this == other); }

  std::uint32_t id = ~0u;
  std::string name;
  Type type;
  std::size_t elements = 0, repeats = 1;
  bool rearranges = false, small = false;
};

} // namespace poplar

#endif
