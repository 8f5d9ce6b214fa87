// How the nonzero values of a matrix are distributed.
#ifndef SNNC_POPSPARSE_SPARSITY_PARAMS_HPP
#define SNNC_POPSPARSE_SPARSITY_PARAMS_HPP
#include <array>
#include <cstddef>
#include <ostream>
#include <tuple>
namespace popsparse {
namespace dynamic {
/// Sparsity of elements, or of whole blocks.
enum class SparsityType { Element, Block };
enum class SparsityStructure { Unstructured };
inline std::ostream &operator<<(std::ostream &os, SparsityType t) { return os << (t == SparsityType::Element ? "Element" : "Block"); }
inline std::ostream &operator<<(std::ostream &os, SparsityStructure) { return os << "Unstructured"; }

struct SparsityParams {
  SparsityType type;
  SparsityStructure structure;
  std::array<std::size_t, 2> blockDimensions;
  /// The given type is ignored: it follows from the size of the blocks.
  SparsityParams(SparsityType = SparsityType::Element, SparsityStructure kind = SparsityStructure::Unstructured,
                 std::array<std::size_t, 2> block = {1, 1})
      : type(block[0] * block[1] == 1 ? SparsityType::Element : SparsityType::Block), structure(kind), blockDimensions(block) {}
  friend bool operator<(const SparsityParams &a, const SparsityParams &b) { return a.blockDimensions < b.blockDimensions; }
  friend bool operator==(const SparsityParams &a, const SparsityParams &b) { return a.blockDimensions == b.blockDimensions; }
  friend bool operator!=(const SparsityParams &a, const SparsityParams &b) { return !(a == b); }
  friend std::ostream &operator<<(std::ostream &os, const SparsityParams &p) {
    return os << "{type: " << p.type << ", structure: " << p.structure << ", blocks: " << p.blockDimensions[0] << "x"
              << p.blockDimensions[1] << "}";
  }
};
} // namespace dynamic
} // namespace popsparse
#endif
