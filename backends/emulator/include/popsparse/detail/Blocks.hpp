// Blocks of the host's sparse matrices, and conversion between their formats.
#ifndef SNNC_POPSPARSE_DETAIL_BLOCKS_HPP
#define SNNC_POPSPARSE_DETAIL_BLOCKS_HPP

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <popsparse/SparseStorageFormats.hpp>
#include <poputil/exceptions.hpp>

namespace popsparse {
namespace detail {

using Shape = std::array<std::size_t, 2>;

/// The blocks of a matrix, row by row: the first element of each, and the start of its values in the matrix that they came from.
struct Blocks {
  std::vector<Shape> at;
  std::vector<std::size_t> from;
};

/// Throws poplibs_error for blocks that overlap, or are outside the matrix or its grid of blocks.
void checkBlocks(const Blocks &blocks, Shape size, Shape block);

inline void sortBlocks(Blocks &blocks) {
  std::vector<std::size_t> order(blocks.at.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return blocks.at[a] < blocks.at[b]; });
  Blocks sorted;
  for (std::size_t i : order) {
    sorted.at.push_back(blocks.at[i]);
    sorted.from.push_back(blocks.from[i]);
  }
  blocks = sorted;
}

[[noreturn]] inline void refuse(const std::string &what) { throw poputil::poplibs_error("sparse matrix: " + what); }

template <class Matrix> void requireValues(const Matrix &m, Shape block) {
  if (m.getBlockDimensions() != block)
    refuse("blocks of " + std::to_string(m.getNumRowsInBlock()) + "x" + std::to_string(m.getNumColumnsInBlock()) +
           " where the parameters have " + std::to_string(block[0]) + "x" + std::to_string(block[1]));
  if (m.nzValues.size() % m.getBlockSize())
    refuse(std::to_string(m.nzValues.size()) + " values do not fill blocks of " + std::to_string(m.getBlockSize()));
}

template <class T> Blocks blocksOf(const COOMatrix<T> &m, Shape size, Shape block) {
  requireValues(m, block);
  const std::size_t n = m.nzValues.size() / m.getBlockSize();
  if (m.rowIndices.size() != n || m.columnIndices.size() != n)
    refuse(std::to_string(m.rowIndices.size()) + " rows and " + std::to_string(m.columnIndices.size()) + " columns for " +
           std::to_string(n) + " blocks");
  Blocks blocks;
  for (std::size_t i = 0; i < n; ++i) {
    blocks.at.push_back({m.rowIndices[i], m.columnIndices[i]});
    blocks.from.push_back(i * m.getBlockSize());
  }
  checkBlocks(blocks, size, block);
  sortBlocks(blocks);
  return blocks;
}

/// The blocks of a matrix in compressed rows (`lineDim` 0) or compressed columns (`lineDim` 1).
template <class T> Blocks blocksOfLines(const std::vector<T> &values, const std::vector<std::size_t> &begins,
                                        const std::vector<std::size_t> &across, Shape size, Shape block, std::size_t lineDim) {
  const std::size_t blockSize = block[0] * block[1], lines = size[lineDim] / block[lineDim];
  if (begins.size() != lines + 1 || begins.front() != 0 || begins.back() != values.size() || across.size() * blockSize != values.size())
    refuse(std::to_string(begins.size()) + " beginnings of " + std::to_string(lines) + " lines, of " + std::to_string(values.size()) +
           " values in " + std::to_string(across.size()) + " blocks");
  Blocks blocks;
  for (std::size_t line = 0; line < lines; ++line)
    for (std::size_t from = begins[line]; from < begins[line + 1]; from += blockSize) {
      Shape at{};
      at[lineDim] = line * block[lineDim];
      at[1 - lineDim] = across.at(from / blockSize);
      blocks.at.push_back(at);
      blocks.from.push_back(from);
    }
  checkBlocks(blocks, size, block);
  sortBlocks(blocks);
  return blocks;
}

template <class T> Blocks blocksOf(const CSRMatrix<T> &m, Shape size, Shape block) {
  requireValues(m, block);
  return blocksOfLines(m.nzValues, m.rowIndices, m.columnIndices, size, block, 0);
}
template <class T> Blocks blocksOf(const CSCMatrix<T> &m, Shape size, Shape block) {
  requireValues(m, block);
  return blocksOfLines(m.nzValues, m.columnIndices, m.rowIndices, size, block, 1);
}

template <class T> std::vector<T> valuesOf(const Blocks &blocks, const std::vector<T> &values, std::size_t blockSize) {
  std::vector<T> found;
  for (std::size_t from : blocks.from)
    found.insert(found.end(), values.begin() + std::ptrdiff_t(from), values.begin() + std::ptrdiff_t(from + blockSize));
  return found;
}

template <class T> COOMatrix<T> asCOO(const std::vector<Shape> &at, const std::vector<T> &values, Shape size, Shape block) {
  std::vector<std::size_t> columns, rows;
  for (const Shape &s : at) {
    rows.push_back(s[0]);
    columns.push_back(s[1]);
  }
  return COOMatrix<T>(size[0], size[1], std::vector<T>(values.begin(), values.begin() + std::ptrdiff_t(at.size() * block[0] * block[1])),
                      columns, rows, block);
}

template <class T> CSRMatrix<T> asCSR(const COOMatrix<T> &m) {
  const std::size_t blockSize = m.getBlockSize();
  std::vector<std::size_t> begins(m.numRows / m.getNumRowsInBlock() + 1);
  for (std::size_t row : m.rowIndices)
    begins[row / m.getNumRowsInBlock() + 1] += blockSize;
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  return CSRMatrix<T>(m.numRows, m.numColumns, m.nzValues, m.columnIndices, begins, m.getBlockDimensions());
}

template <class T> CSCMatrix<T> asCSC(const COOMatrix<T> &m) {
  const std::size_t blockSize = m.getBlockSize();
  std::vector<std::size_t> begins(m.numColumns / m.getNumColumnsInBlock() + 1), order(m.rowIndices.size()), rows;
  for (std::size_t column : m.columnIndices)
    begins[column / m.getNumColumnsInBlock() + 1] += blockSize;
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return m.columnIndices[a] < m.columnIndices[b]; });
  Blocks blocks;
  for (std::size_t i : order) {
    rows.push_back(m.rowIndices[i]);
    blocks.from.push_back(i * blockSize);
  }
  return CSCMatrix<T>(m.numRows, m.numColumns, valuesOf(blocks, m.nzValues, blockSize), begins, rows, m.getBlockDimensions());
}

} // namespace detail
} // namespace popsparse

#endif
