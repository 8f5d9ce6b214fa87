// Handles of vertices, their fields, compute sets and functions.
#ifndef SNNC_POPLAR_VERTEX_REF_HPP
#define SNNC_POPLAR_VERTEX_REF_HPP

#include <cstdint>
#include <string>
#include <utility>

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

} // namespace poplar

#endif
