// popsparse: block-sparse products whose positions are known when the graph is built.
#include <popsparse/experimental/BlockSparseMatMul.hpp>

#include <algorithm>

#include <poputil/exceptions.hpp>

#include "sparse_blocks.hpp"

namespace popsparse {

using namespace poplibs;
using namespace detail;
using poplar::DebugContext;
using poplar::OptionFlags;

namespace experimental {

namespace {

std::array<std::size_t, 3> positive(const std::array<int, 3> &numbers, const char *what) {
  std::array<std::size_t, 3> found{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (numbers[i] <= 0)
      detail::refuse(std::string(what) + " " + std::to_string(numbers[i]));
    found[i] = std::size_t(numbers[i]);
  }
  return found;
}

/// The grid of the matrix that the mask describes.
Grid maskedGrid(const BSMatMulParams &p) {
  if (p.resultIsSparse)
    return {{p.size[0], p.size[2]}, {p.block[0], p.block[2]}};
  return p.transposed ? Grid{{p.size[2], p.size[1]}, {p.block[2], p.block[1]}} : Grid{{p.size[1], p.size[2]}, {p.block[1], p.block[2]}};
}

void check(const BSMatMulParams &p) {
  for (std::size_t i = 0; i < 3; ++i)
    if (p.size[i] % p.block[i])
      detail::refuse("blocks of " + std::to_string(p.block[i]) + " do not fill a dimension of " + std::to_string(p.size[i]));
  if (p.groups == 0 || p.mask.size() != p.groups * maskedGrid(p).blocks())
    detail::refuse("a mask of " + std::to_string(p.mask.size()) + " numbers for " + std::to_string(p.groups) + " groups of " +
                   std::to_string(maskedGrid(p).blocks()) + " blocks");
}

/// Numbers of the nonzero blocks of one group.
std::vector<unsigned> blocksOf(const BSMatMulParams &p, std::size_t group) {
  const std::size_t n = maskedGrid(p).blocks();
  std::vector<unsigned> found;
  for (std::size_t i = 0; i < n; ++i)
    if (p.mask[group * n + i])
      found.push_back(unsigned(i));
  return found;
}

std::size_t allBlocks(const BSMatMulParams &p) {
  return std::size_t(std::count_if(p.mask.begin(), p.mask.end(), [](unsigned char c) { return c != 0; }));
}

} // namespace

BSMatMulParams::BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize,
                               const std::vector<unsigned char> &rhsSparsity, bool rhsNeedTranspose, Type inDataType, Type outDataType,
                               Type, unsigned numGroups)
    : size(positive(dim, "a dimension of")), block(positive(blockSize, "a block of")), mask(rhsSparsity), resultIsSparse(false),
      transposed(rhsNeedTranspose), in(inDataType), out(outDataType), groups(numGroups) {
  check(*this);
}

BSMatMulParams::BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize,
                               const std::vector<unsigned char> &resSparsity, Type inDataType, Type outDataType, Type,
                               SubBlockMask subBlockMask, unsigned numGroups)
    : size(positive(dim, "a dimension of")), block(positive(blockSize, "a block of")), mask(resSparsity), resultIsSparse(true),
      transposed(false), in(inDataType), out(outDataType), groups(numGroups) {
  if (subBlockMask != SubBlockMask::None)
    detail::refuse("masks inside of blocks are not emulated");
  check(*this);
}

Tensor createBSMatMulInputLHS(Graph &graph, const BSMatMulParams &p, const DebugContext &context, const OptionFlags &options) {
  start(graph, options, contextName(context, "bsMatMul"));
  return linear(graph, p.in, {p.groups * p.size[0], p.size[1]}, contextName(context, "bsMatMul") + "/lhs");
}

Tensor createBSMatMulInputRHS(Graph &graph, const BSMatMulParams &p, const DebugContext &context, const OptionFlags &options) {
  const std::string name = contextName(context, "bsMatMul");
  start(graph, options, name);
  return p.resultIsSparse ? linear(graph, p.in, {p.groups * p.size[1], p.size[2]}, name + "/rhs")
                          : linear(graph, p.in, {allBlocks(p), maskedGrid(p).elements()}, name + "/rhs");
}

Tensor bsMatMul(Graph &graph, const BSMatMulParams &p, Sequence &prog, const Tensor &lhs, const Tensor &rhs, const OptionFlags &options,
                const DebugContext &context) {
  const std::string name = contextName(context, "bsMatMul");
  start(graph, options, name);
  const Grid grid = maskedGrid(p);
  requireMatrix(lhs, {p.groups * p.size[0], p.size[1]}, name + ": the left operand");
  if (p.resultIsSparse)
    requireMatrix(rhs, {p.groups * p.size[1], p.size[2]}, name + ": the right operand");
  else
    requireMatrix(rhs, {allBlocks(p), grid.elements()}, name + ": the list of blocks");
  std::vector<Tensor> results;
  std::size_t first = 0;
  for (std::size_t g = 0; g < p.groups; ++g) {
    const Tensor a = lhs.slice(g * p.size[0], (g + 1) * p.size[0]);
    const std::vector<unsigned> blocks = blocksOf(p, g);
    if (p.resultIsSparse) {
      const Tensor dense = multiplied(graph, a, rhs.slice(g * p.size[1], (g + 1) * p.size[1]), p.out, prog, name);
      if (!blocks.empty())
        results.push_back(picked(graph, dense, constantPlaces(graph, blocks, name), grid, prog, name).squeeze({1}));
      continue;
    }
    const Tensor dense = densified(graph, rhs.slice(first, first + blocks.size()), constantPlaces(graph, blocks, name), grid, prog, name);
    results.push_back(multiplied(graph, a, p.transposed ? dense.transpose() : dense, p.out, prog, name));
    first += blocks.size();
  }
  if (results.empty())
    detail::refuse("a result without blocks");
  return poplar::concat(results);
}

} // namespace experimental
} // namespace popsparse
