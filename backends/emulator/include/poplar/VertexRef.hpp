// Handles of vertices, their fields, compute sets and functions.
#ifndef SNNC_POPLAR_VERTEX_REF_HPP
#define SNNC_POPLAR_VERTEX_REF_HPP

#include <cstdint>
#include <string>
#include <utility>

#include <poplar/FunctionBufferMappingType.hpp>

namespace poplar {

/// A field of a vertex, or one element of it.
class FieldRef {
public:
  FieldRef operator[](std::size_t index) const {
    FieldRef element = *this;
    element.index = std::int64_t(index);
    return element;
  }
  const std::string &getName() const { return name; }

  FieldRef(std::uint32_t vertexId, std::string field) : vertex(vertexId), name(std::move(field)) {}

  std::uint32_t vertex;
  std::string name;
  std::int64_t index = -1;
};

class VertexRef {
public:
  VertexRef() = default;
  explicit VertexRef(std::uint32_t vertexId) : id(vertexId) {}
  FieldRef operator[](const std::string &field) const { return FieldRef{id, field}; }
  std::uint32_t getId() const { return id; }

  std::uint32_t id = ~0u;
};

class ComputeSet {
public:
  ComputeSet() = default;
  explicit ComputeSet(std::uint32_t computeSetId) : id(computeSetId) {}
  std::uint32_t getId() const { return id; }

  std::uint32_t id = ~0u;
};

using Function = std::uint32_t;

/// A copy of a function's code (Graph::addFunctionBuffer). The emulator keeps the code of every function on its tiles.
class FunctionBuffer {
public:
  FunctionBuffer() = default;
  FunctionBuffer(Function of, FunctionBufferMappingType type) : function(of), mapping(type) {}
  friend bool operator==(const FunctionBuffer &a, const FunctionBuffer &b) { return a.function == b.function && a.mapping == b.mapping; }
  friend bool operator!=(const FunctionBuffer &a, const FunctionBuffer &b) { return !(a == b); }

  Function function = ~0u;
  FunctionBufferMappingType mapping = FunctionBufferMappingType::NONE;
};

} // namespace poplar

#endif
