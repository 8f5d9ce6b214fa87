// Views of elements: strided descriptors over a variable or a list of runs, and the blocks that they consist of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace poplar::core {

/// Elements of a variable: strides and rows of blocks have 32-bit counts.
constexpr std::int64_t mostElements = 0xffffffff;

using Index = std::int64_t;

/// Elements start, start + stride, … of a variable.
struct Run {
  std::uint32_t var;
  Index start, stride, count;
};

/// Elements start + i * s1 + j * s0 (i < n1, j < n0) of a variable, in that order.
struct Block {
  std::uint32_t var;
  std::uint32_t n0, n1;
  Index start, s0, s1;
  Index size() const { return Index(n0) * n1; }
  bool contiguous() const { return n1 == 1 && (n0 == 1 || s0 == 1); }
};

/// A flat sequence of elements that no single stride can describe.
struct RunList {
  std::vector<Run> runs;
  /// Position of the first element of each run, and the total.
  std::vector<Index> first;
  void append(Run run);
};

/// A tensor's elements: shape and strides over `list`, or over variable `var` without a list.
struct View {
  std::uint32_t var = 0;
  std::shared_ptr<const RunList> list;
  Index offset = 0;
  std::vector<std::size_t> shape;
  std::vector<Index> strides;
  Index numElements() const;
};

std::vector<Index> rowMajorStrides(const std::vector<std::size_t> &shape);

/// The elements of `view` in row-major order, in as few blocks as one pass can find.
std::vector<Block> blocksOf(const View &view);
/// Appends `block` to `blocks`, merged with the last one if it continues that.
void appendBlock(std::vector<Block> &blocks, const Block &block);
/// The same elements as one flat list.
std::shared_ptr<const RunList> runsOf(const View &view);

/// Strides of `view` under another shape, or false if only a run list can represent it.
bool stridesForShape(const View &view, const std::vector<std::size_t> &shape, std::vector<Index> &strides);

/// Calls f(begin, end) for the contiguous ranges of a block, in any order.
template <class F> void forEachInterval(const Block &b, F &&f) {
  const Index n0 = b.n0, n1 = b.n1;
  const bool unit0 = n0 == 1 || b.s0 == 1 || b.s0 == -1 || b.s0 == 0;
  if (unit0) {
    const Index low = n0 > 1 && b.s0 == -1 ? b.start - (n0 - 1) : b.start;
    const Index length = b.s0 == 0 ? 1 : n0;
    if (b.s1 == 0 || n1 == 1)
      return f(low, low + length);
    if (length == 1 && (b.s1 == 1 || b.s1 == -1)) {
      const Index begin = b.s1 == 1 ? low : low - (n1 - 1);
      return f(begin, begin + n1);
    }
    for (Index i = 0; i < n1; ++i)
      f(low + i * b.s1, low + i * b.s1 + length);
    return;
  }
  const bool unit1 = n1 == 1 || b.s1 == 1 || b.s1 == -1 || b.s1 == 0;
  const Index low = n1 > 1 && b.s1 == -1 ? -(n1 - 1) : 0;
  const Index length = b.s1 == 0 ? 1 : n1;
  if (unit1) {
    for (Index j = 0; j < n0; ++j)
      f(b.start + j * b.s0 + low, b.start + j * b.s0 + low + length);
    return;
  }
  for (Index i = 0; i < n1; ++i)
    for (Index j = 0; j < n0; ++j) {
      const Index e = b.start + i * b.s1 + j * b.s0;
      f(e, e + 1);
    }
}

} // namespace poplar::core
